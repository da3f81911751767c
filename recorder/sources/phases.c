/* SPDX-License-Identifier: Apache-2.0 */
#include "phases.h"

#include <triggers/triggers.h>

struct shipped {
	unsigned phase;
	const char *pattern;
};

/*
 * Names as they stand in traces, or as monitoring reports them:
 *  - TraceMe and profiler.annotate_function of JAX (jax/_src/compiler.py), its monitoring events, and orbax's;
 *  - torch.profiler.record_function of PyTorch (dynamo_timed adds its suffix) and of Lightning's profilers ("[pl]…");
 *  - Python frames: "file.py(12): function" (Kineto), "$file.py:12 function" (XPlane);
 *  - tf.profiler's step names (Keras: "train", "test", "predict"), TensorFlow's ops;
 *  - the functions of MaxText, T5X, Hugging Face's Trainer and Megatron, and what people call it.
 */
static const struct shipped shipped[] = {
	/* JAX, PJRT, XLA */
	{PHASES_COMPILE, "backend_compile"},
	{PHASES_COMPILE, "backend_compile_and_load"},
	{PHASES_COMPILE, "compile_or_get_cached"},
	{PHASES_COMPILE, "/jax/core/compile/*_duration"},
	{PHASES_COMPILE, "PJRT_Client_Compile"},
	{PHASES_COMPILE, "*Client::Compile*"},
	{PHASES_COMPILE, "TpuCompiler::Compile*"},
	{PHASES_COMPILE, "XlaCompile*"},
	/* orbax. "…/duration_since_last_checkpoint_secs" is the time between two: no pattern may meet it. */
	{PHASES_CHECKPOINT, "/jax/checkpoint/write/durations_sec"},
	{PHASES_CHECKPOINT, "/jax/checkpoint/write/async/blocking_duration_secs"},
	{PHASES_CHECKPOINT, "/jax/orbax/write/blocking_duration_secs"},
	{PHASES_CHECKPOINT, "/jax/checkpoint/read/durations_sec"},
	{PHASES_CHECKPOINT, "/jax/orbax/read/*blocking_duration_secs"},
	{PHASES_CHECKPOINT, "$checkpoint_manager.py:* save"},
	{PHASES_CHECKPOINT, "$checkpoint_manager.py:* restore"},
	{PHASES_CHECKPOINT, "$checkpointer.py:* save"},
	{PHASES_CHECKPOINT, "$checkpointer.py:* restore"},
	{PHASES_CHECKPOINT, "$async_checkpointer.py:* save"},
	/* PyTorch */
	{PHASES_COMPILE, "*(dynamo_timed)"},
	{PHASES_COMPILE, "entire_frame_compile"},
	{PHASES_COMPILE, "_compile.compile_inner"},
	{PHASES_COMPILE, "compile_fx*"},
	{PHASES_CHECKPOINT, "torch.save"},
	{PHASES_CHECKPOINT, "torch.load"},
	{PHASES_CHECKPOINT, "*torch/serialization.py(*): save"},
	{PHASES_CHECKPOINT, "*torch/serialization.py(*): load"},
	{PHASES_CHECKPOINT, "*distributed/checkpoint/state_dict_saver.py(*): *save"},
	{PHASES_CHECKPOINT, "*distributed/checkpoint/state_dict_loader.py(*): load"},
	/* Lightning */
	{PHASES_EVAL, "[pl][profile]*.validation_step"},
	{PHASES_EVAL, "[pl][profile]*.test_step"},
	{PHASES_EVAL, "[pl][profile]run_*evaluation*"},
	{PHASES_CHECKPOINT, "[pl][profile]save_checkpoint*"},
	{PHASES_CHECKPOINT, "[pl][profile][Callback]ModelCheckpoint*"},
	/* TensorFlow, Keras */
	{PHASES_EVAL, "test"},
	{PHASES_EVAL, "predict"},
	{PHASES_CHECKPOINT, "SaveV2*"},
	{PHASES_CHECKPOINT, "MergeV2Checkpoints*"},
	{PHASES_CHECKPOINT, "RestoreV2*"},
	/* training loops of every kind */
	{PHASES_CHECKPOINT, "save_checkpoint*"},
	{PHASES_CHECKPOINT, "maybe_save_checkpoint*"},
	{PHASES_CHECKPOINT, "load_checkpoint*"},
	{PHASES_CHECKPOINT, "restore_checkpoint*"},
	{PHASES_CHECKPOINT, "* save_checkpoint"},
	{PHASES_CHECKPOINT, "* maybe_save_checkpoint"},
	{PHASES_CHECKPOINT, "* load_checkpoint"},
	{PHASES_CHECKPOINT, "* save_checkpoint_and_time"},
	{PHASES_CHECKPOINT, "checkpoint"},
	{PHASES_CHECKPOINT, "checkpointing"},
	{PHASES_CHECKPOINT, "checkpoint_save*"},
	{PHASES_CHECKPOINT, "checkpoint_saving"},
	{PHASES_CHECKPOINT, "checkpoint_write"},
	{PHASES_CHECKPOINT, "checkpoint.save"},
	{PHASES_CHECKPOINT, "Checkpoint Save"},
	{PHASES_EVAL, "eval"},
	{PHASES_EVAL, "eval_step*"},
	{PHASES_EVAL, "eval_loop"},
	{PHASES_EVAL, "eval_epoch"},
	{PHASES_EVAL, "evaluate"},
	{PHASES_EVAL, "evaluation"},
	{PHASES_EVAL, "evaluation_loop"},
	{PHASES_EVAL, "prediction_step"},
	{PHASES_EVAL, "validate"},
	{PHASES_EVAL, "validation"},
	{PHASES_EVAL, "validation_step"},
	{PHASES_EVAL, "validation_epoch"},
	{PHASES_EVAL, "val_step"},
	{PHASES_EVAL, "* evaluation_loop"},
	{PHASES_EVAL, "* evaluate_and_print_results"},
	{PHASES_EVAL, "EVALUATION STEP"},
};

static const char *const texts[PHASES_COUNT] = {NULL, "train", "checkpoint", "eval", "compile"};

const char *phases_text(unsigned phase)
{
	return phase < PHASES_COUNT ? texts[phase] : NULL;
}

unsigned phases_shipped(const char *name)
{
	for (size_t i = 0; i < sizeof(shipped) / sizeof(shipped[0]); i++)
		if (triggers_pattern_match(shipped[i].pattern, name))
			return shipped[i].phase;
	return PHASES_NONE;
}

unsigned phases_find(const struct phases *own, const char *name)
{
	for (unsigned phase = PHASES_TRAIN; own && phase < PHASES_COUNT; phase++)
		for (size_t i = 0; i < own->count[phase]; i++)
			if (triggers_pattern_match(own->pattern[phase][i], name))
				return phase == PHASES_TRAIN ? PHASES_NONE : phase;
	return phases_shipped(name);
}
