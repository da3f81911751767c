/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driverec/identity.h: who this process is in its job, and where rings live. One table for producers and
 * the daemon, so that both say the same.
 *
 *   job   DRIVEREC_JOB, SLURM_JOB_ID (_ SLURM_ARRAY_TASK_ID), TORCHELASTIC_RUN_ID, JOB_NAME, POD_NAME
 *   rank  DRIVEREC_RANK, RANK, SLURM_PROCID, JAX_PROCESS_INDEX, JAX_PROCESS_ID,
 *         TPU_WORKER_ID (+ MEGASCALE_SLICE_ID x hosts a slice by TPU_WORKER_HOSTNAMES), JOB_COMPLETION_INDEX
 *
 * Thread-safe as far as the environment is not changed meanwhile.
 */
#ifndef DRIVEREC_IDENTITY_H
#define DRIVEREC_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

#include <driverec/format.h>

#ifdef __cplusplus
extern "C" {
#endif

struct drec_identity {
	char job[DREC_TEXT_MAX];  /* "job" where the environment says nothing */
	char name[DREC_TEXT_MAX]; /* "rank<N>", else the process name */
	char host[DREC_TEXT_MAX];
	int32_t rank;             /* -1 = unknown */
	const char *job_origin;   /* the variable it is from, or "default" */
	const char *rank_origin;
};

void drec_identity_read(struct drec_identity *ret_identity);

/* Whether a text may be a job or ring name: [A-Za-z0-9._-]{1,63}, no leading dot. */
int drec_text_allowed(const char *text);

/* Copies `text` with every byte that is not allowed replaced by '_', cut to 63. "" becomes "job". */
void drec_text_clean(char ret_text[DREC_TEXT_MAX], const char *text);

/*
 * The run directory: `given` if not NULL, else $DRIVEREC_RUN_DIR, else /run/driverec if it is there, else
 * /dev/shm/driverec-<uid>. Makes it and its `rings` folder (0700) where missing, except /run/driverec.
 * Returns 0 or -errno with a static text in *ret_why: -EPERM if /dev/shm/driverec-<uid> belongs to
 * somebody else or is open to others. `room` of 256 suffices for the defaults.
 */
int drec_run_dir(const char *given, char *ret_path, size_t room, const char **ret_why);

#ifdef __cplusplus
}
#endif
#endif
