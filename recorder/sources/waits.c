/* SPDX-License-Identifier: Apache-2.0 */
#include "waits.h"

#include <string.h>

#include <triggers/triggers.h>

enum { NAME_MAX_BYTES = 255 };

/* Lower case, without '-' and '_'. What a loader does for its rank is not among them: it is the rank's own doing. */
static const char *const patterns[] = {
	/* libraries whose kernels and calls are collectives: NCCL, RCCL, MSCCL, Gloo, c10d, MPI */
	"nccl*",
	"*:nccl*",
	"rccl*",
	"msccl*",
	"gloo*",
	"c10d::*",
	"recordparamcomms",
	"mpi*",
	/* collectives by name: PyTorch, XLA, JAX, Megatron */
	"*allreduce*",
	"*allgather*",
	"*reducescatter*",
	"*alltoall*",
	"*collective*",
	"*psum*",
	"*ppermute*",
	/* between two ranks, or host and device */
	"*send*",
	"*recv*",
	"infeed*",
	"outfeed*",
	/* waiting */
	"*barrier*",
	"*wait*",
	"*blockuntilready*",
	"*synchronize*",
	"*acquire*of*lock*",
	"*lock.acquire*",
};

static size_t plain(char out[NAME_MAX_BYTES + 1], const char *name, size_t bytes)
{
	size_t used = 0;
	for (size_t i = 0; i < bytes && i < NAME_MAX_BYTES && name[i]; i++) {
		if (name[i] == '-' || name[i] == '_')
			continue;
		out[used++] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + ('a' - 'A')) : name[i];
	}
	out[used] = 0;
	return used;
}

static bool matches(char *const *own, size_t count, const char *text)
{
	char pattern[NAME_MAX_BYTES + 1];
	for (size_t i = 0; i < count; i++)
		if (plain(pattern, own[i], strlen(own[i])) && triggers_pattern_match(pattern, text))
			return true;
	return false;
}

bool waits_name(const struct waits *own, const char *name, size_t bytes)
{
	char text[NAME_MAX_BYTES + 1];
	if (!plain(text, name, bytes) || (own && matches(own->own, own->n_own, text)))
		return false;
	if (own && matches(own->wait, own->n_wait, text))
		return true;
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		if (triggers_pattern_match(patterns[i], text))
			return true;
	return false;
}
