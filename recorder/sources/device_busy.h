/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources/device_busy.h: how busy each device of a capture was, as counters device:<n>:busy for device_idle.
 *
 * Devices   Kineto: kernels, copies and fills (by category) of the GPU that is their pid. XPlane, and the
 *           Chrome JSON made of it: planes /device:<KIND>:<n>; of GPUs the lines "Stream...", of all others
 *           "XLA Ops", without infeed, outfeed, send and recv, in which a TPU waits.
 * Counter   percent of each bin that the union of those spans covers. A bin is a third of the median step, at
 *           least 100 ms and at most 1 s; it is told at its end, from the first span of any device to the end
 *           of the capture.
 * Waits     the span of a host track by which the host waits (TransferToDevice, infeed,
 *           cudaStreamSynchronize, a loader's next, ...) that covers half of a bin goes along, so that the
 *           evidence can name it: of two that do, the one that began later.
 *
 * device_idle asks for idleness of 10 s and two steps, after steps and busy bins enough to know the device: a
 * capture of two steps shows none. 24 bytes a span of a device, and a wait.
 */
#ifndef RECORDER_SOURCES_DEVICE_BUSY_H
#define RECORDER_SOURCES_DEVICE_BUSY_H

#include <stdint.h>

#include <reducer/event.h>
#include <triggers/triggers.h>

enum { DEVICE_BUSY_DEVICES_MAX = 64 };

struct device_busy;

int device_busy_new(struct device_busy **ret_busy);
void device_busy_free(struct device_busy *busy);

/* Any event of the capture, in the order of the file: names of processes and threads come before spans. */
int device_busy_event(struct device_busy *busy, const struct reducer_event *event);
/* A step, or (`step` INT64_MIN) a phase, that the engine's series will be told of: opened at its begin. */
int device_busy_step(struct device_busy *busy, uint32_t series, int64_t start_ns, int64_t end_ns,
		     int64_t step);
/* All is known: makes the counters' series. 0 also where there is no device, or -ENOMEM. */
int device_busy_series(struct device_busy *busy, struct triggers_engine *engine);

/* What is next: samples at or before a time, openings before it. */
enum device_busy_kind { DEVICE_BUSY_NONE = 0, DEVICE_BUSY_OPEN, DEVICE_BUSY_SAMPLE };
struct device_busy_next {
	enum device_busy_kind kind;
	uint32_t series;
	int64_t at_ns;
	int64_t step;                  /* of an opening */
	struct triggers_sample sample; /* of a sample; its note lives as long as `busy` */
};
struct device_busy_next device_busy_next(struct device_busy *busy, int64_t now_ns);

#endif
