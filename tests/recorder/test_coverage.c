/* SPDX-License-Identifier: Apache-2.0 */
/* What an incident says it has of its windows, held against files that hold less. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <driverec/driverec.h>
#include <driverec/freeze.h>

#include "incidents/incident.h"
#include "incidents/parts.h"
#include "support.h"

#define S INT64_C(1000000000)

/* A ring with something of each class, written out as raw/<file>; the incident's only window is that of it.
 */
struct sample {
	struct incident incident;
	struct incident_ring ring;
	const char *folder;
	drec *rec;
	struct drec_reader *reader;
	int fd;
};

static void make_sample(struct sample *sample)
{
	const char *run_dir = test_shm_folder();
	const struct drec_options options = {.run_dir = run_dir, .name = "a", .ring_bytes = 1 << 20};
	struct drec_problem problem;
	uint32_t device;

	memset(sample, 0, sizeof(*sample));
	ck_assert_int_eq(mkdir(test_path(run_dir, "rings"), 0700), 0);
	sample->folder = test_folder();
	sample->fd = open(sample->folder, O_RDONLY | O_DIRECTORY);
	sample->rec = drec_open(&options);
	ck_assert_ptr_nonnull(sample->rec);
	assert_ok(drec_reader_open(AT_FDCWD, drec_path(sample->rec), NULL, &sample->reader, &problem));
	for (int i = 0; i < 100; i++) {
		drec_step_begin(sample->rec, (uint64_t)i, 0);
		drec_span(sample->rec, 0, drec_name(sample->rec, "load"), drec_now(sample->rec), 0);
		drec_counter(sample->rec, 0, drec_name(sample->rec, "queue"), i);
		drec_step_end(sample->rec);
	}
	device = drec_track(sample->rec, "device:0", "power");
	drec_counter(sample->rec, device, drec_name(sample->rec, "power"), 400);
	device = drec_track_n(sample->rec, DREC_TRACK_STREAM, "gpu0", 4, "stream 7", 8);
	drec_span(sample->rec, device, drec_name(sample->rec, "matmul"), drec_now(sample->rec), 0);
}

static void write_sample(struct sample *sample)
{
	const struct drec_header *header = drec_reader_header(sample->reader);
	int64_t offset = drec_reader_mono_to_unix_ns(sample->reader);
	struct drec_snapshot_request request = {.mono_to_unix_ns = offset,
						.a_ns = header->created_mono_ns + offset};
	struct drec_snapshot_result result;
	struct timespec now;
	int fd;

	/* A young ring's two anchors are 2 ms apart, so its clock may be some 10 us off. */
	nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	clock_gettime(CLOCK_MONOTONIC, &now);
	request.t0_ns = request.b_ns = (int64_t)now.tv_sec * S + now.tv_nsec + offset;
	fd = openat(sample->fd, "a.drec", O_RDWR | O_CREAT | O_EXCL, 0600);
	ck_assert_int_ge(fd, 0);
	assert_ok(drec_snapshot_write(sample->reader, fd, &request, &result));
	close(fd);
	sample->incident.rings = &sample->ring;
	sample->incident.n_rings = 1;
	sample->incident.n_windows = sample->incident.n_firings = 1;
	sample->incident.mono_to_unix_ns = offset;
	sample->incident.firing[0].t0_ns = request.t0_ns;
	sample->incident.window[0].a_ns = request.a_ns;
	sample->incident.window[0].b_ns = request.b_ns;
	sample->ring.fd = -1;
	sample->ring.born_ns = request.a_ns;
	ck_assert_ptr_nonnull(incident_raw_add(&sample->ring));
	snprintf(sample->ring.raw[0].file, sizeof(sample->ring.raw[0].file), "a.drec");
	snprintf(sample->ring.name, sizeof(sample->ring.name), "a");
}

static void end_sample(struct sample *sample)
{
	drec_reader_free(sample->reader);
	drec_close(sample->rec);
	free(sample->ring.raw);
	close(sample->fd);
}

START_TEST(each_class_is_told_apart)
{
	struct sample sample;
	const struct incident_coverage *coverage = sample.incident.coverage;

	make_sample(&sample);
	write_sample(&sample);
	assert_ok(incident_cover(&sample.incident, sample.fd));
	for (unsigned i = 0; i < INCIDENT_DEVICE_EVENTS; i++) {
		ck_assert_msg(coverage[i].verdict == INCIDENT_COMPLETE, "%s: %s", incident_class_name(i),
			      coverage[i].why);
		ck_assert_int_eq(coverage[i].recorded_ns, coverage[i].asked_ns);
	}
	ck_assert_uint_eq(coverage[INCIDENT_MARKS].events, 200);
	ck_assert_uint_eq(coverage[INCIDENT_HOST_SPANS].events, 100);
	ck_assert_uint_eq(coverage[INCIDENT_HOST_COUNTERS].events, 100);
	ck_assert_uint_eq(coverage[INCIDENT_DEVICE_COUNTERS].events, 1);
	ck_assert_uint_eq(coverage[INCIDENT_DEVICE_LAUNCHES].events, 1);
	ck_assert_int_eq(coverage[INCIDENT_DEVICE_EVENTS].verdict, INCIDENT_NONE);
	ck_assert_int_eq(sample.incident.verdict, INCIDENT_COMPLETE);
	end_sample(&sample);
}
END_TEST

START_TEST(a_loss_inside_is_partial)
{
	struct sample sample;

	make_sample(&sample);
	drec_note_loss(sample.rec, DREC_LOSS_SOURCE, 7, drec_now(sample.rec), drec_now(sample.rec));
	drec_instant(sample.rec, 0, drec_name(sample.rec, "after"));
	write_sample(&sample);
	assert_ok(incident_cover(&sample.incident, sample.fd));
	ck_assert_int_eq(sample.incident.verdict, INCIDENT_PARTIAL);
	ck_assert_int_eq(sample.incident.coverage[INCIDENT_HOST_SPANS].verdict, INCIDENT_PARTIAL);
	ck_assert_uint_eq(sample.incident.n_losses, 1);
	ck_assert_uint_eq(sample.incident.loss[0].count, 7);
	end_sample(&sample);
}
END_TEST

/* Each way in which a file holds less than the incident's window. */
START_TEST(less_is_never_complete)
{
	struct sample sample;

	make_sample(&sample);
	write_sample(&sample);
	switch (_i) {
	case 0: /* the window goes on after the file */
		sample.incident.window[0].b_ns += 1;
		break;
	case 1: /* and begins before it, though the ring was there */
		sample.incident.window[0].a_ns -= S;
		sample.ring.born_ns -= 2 * S;
		break;
	case 2: /* the file could not be written */
		sample.ring.raw[0].error = -ENOSPC;
		break;
	case 3: /* or is not there */
		ck_assert_int_eq(unlinkat(sample.fd, "a.drec", 0), 0);
		break;
	case 4: /* nobody asked the ring */
		sample.ring.n_raw = 0;
		break;
	case 5: /* a source was late */
		sample.ring.late = true;
		break;
	case 6: /* a second window of which there is no file */
		sample.incident.window[sample.incident.n_windows++] = (struct incident_window){
			sample.incident.window[0].b_ns + S, sample.incident.window[0].b_ns + 2 * S};
		break;
	default:
		sample.incident.restarted = true;
		break;
	}
	assert_ok(incident_cover(&sample.incident, sample.fd));
	ck_assert_int_eq(sample.incident.verdict, INCIDENT_PARTIAL);
	ck_assert(sample.incident.why_partial[0]);
	if (_i < 7)
		ck_assert_int_ne(sample.incident.coverage[INCIDENT_HOST_SPANS].verdict, INCIDENT_COMPLETE);
	end_sample(&sample);
}
END_TEST

START_TEST(no_ring_is_partial)
{
	struct incident incident = {.n_windows = 1, .n_firings = 1, .window[0] = {1 * S, 2 * S}};

	assert_ok(incident_cover(&incident, -1));
	ck_assert_int_eq(incident.verdict, INCIDENT_PARTIAL);
	for (unsigned i = 0; i < INCIDENT_CLASSES; i++)
		ck_assert_int_eq(incident.coverage[i].verdict, INCIDENT_NONE);
}
END_TEST

START_TEST(device_events_exist_where_captures_ran)
{
	struct incident incident = {.n_windows = 1, .n_firings = 1, .window[0] = {100 * S, 140 * S}};
	const struct incident_coverage *device = &incident.coverage[INCIDENT_DEVICE_EVENTS];
	char text[256];

	incident.firing[0].t0_ns = 120 * S;
	incident.n_captures = 3;
	incident.capture[0] = (struct incidents_capture){"before", 90 * S, 95 * S};
	incident.capture[1] = (struct incidents_capture){"inside", 110 * S, 111 * S};
	incident.capture[2] = (struct incidents_capture){"after", 150 * S, 152 * S};
	assert_ok(incident_cover(&incident, -1));
	ck_assert_int_eq(device->verdict, INCIDENT_PARTIAL);
	ck_assert_int_eq(device->recorded_ns, 1 * S);
	ck_assert_uint_eq(device->n_gaps, 2);
	ck_assert_int_eq(device->before_end_ns, 95 * S);
	ck_assert_int_eq(device->after_begin_ns, 150 * S);
	incident_device_sentence(&incident, text, sizeof(text));
	ck_assert_str_eq(text, "Device events for 1.0 s of 40.0 s; last capture ended 25.0 s before t0.");

	incident.capture[1].begin_ns = 99 * S;
	incident.capture[1].end_ns = 141 * S;
	assert_ok(incident_cover(&incident, -1));
	ck_assert_int_eq(device->verdict, INCIDENT_COMPLETE);
}
END_TEST

START_TEST(clock_changes_are_listed)
{
	struct drec_anchor anchors[4] = {0};
	struct incident incident = {.n_windows = 1,
				    .n_firings = 1,
				    .window[0] = {0, 100 * S},
				    .anchors = anchors,
				    .n_anchors = 4};

	for (int i = 0; i < 4; i++)
		anchors[i] = (struct drec_anchor){
			.seq = 1, .mono_ns = (i + 1) * S, .real_ns = (i + 1) * S + i, .boot_ns = (i + 1) * S};
	anchors[2].real_ns -= 3600 * S;
	anchors[3].real_ns -= 3600 * S;
	anchors[3].boot_ns += 5 * S;
	incident_clocks(&incident);
	ck_assert_uint_eq(incident.n_clock_marks, 2);
	ck_assert_str_eq(incident.clock_mark[0].what, "step");
	ck_assert_str_eq(incident.clock_mark[1].what, "suspend");
	ck_assert_int_eq(incident.clock_error_ns, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("incident coverage");
	TCase *classes = tcase_create("classes"), *less = tcase_create("never complete by mistake");
	TCase *device = tcase_create("device events"), *clocks = tcase_create("clocks");

	tcase_add_test(classes, each_class_is_told_apart);
	tcase_add_test(less, a_loss_inside_is_partial);
	tcase_add_loop_test(less, less_is_never_complete, 0, 8);
	tcase_add_test(less, no_ring_is_partial);
	tcase_add_test(device, device_events_exist_where_captures_ran);
	tcase_add_test(clocks, clock_changes_are_listed);
	suite_add_tcase(suite, classes);
	suite_add_tcase(suite, less);
	suite_add_tcase(suite, device);
	suite_add_tcase(suite, clocks);
	return test_run(suite);
}
