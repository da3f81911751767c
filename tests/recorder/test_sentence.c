/* SPDX-License-Identifier: Apache-2.0 */
/* The first sentence of an incident: who, inside of what, since when. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <driverec/event.h>

#include "incidents/incident.h"
#include "support.h"

enum { RANKS = 6, ROOM = 512 };
#define T0_NS INT64_C(1796025150595217108) /* 07:52:30.595 UTC */

struct made {
	struct incident incident;
	struct incident_ring rings[RANKS];
	struct incident_open open[2 * RANKS];
	char text[ROOM];
};

/* Each rank is in step 80, innermost in inside[rank]; NULL = in the step alone, "" = in no step. */
static struct made *make(const char *trigger, uint32_t noticed, const char *const *inside, unsigned ranks)
{
	struct made *made = calloc(1, sizeof(*made));
	struct incident *incident = &made->incident;

	ck_assert_ptr_nonnull(made);
	for (unsigned rank = 0; rank < ranks; rank++) {
		made->rings[rank].source = rank + 1;
		made->rings[rank].rank = rank;
		made->rings[rank].pid = 100 + rank;
		if (inside[rank] && !inside[rank][0])
			continue;
		made->open[incident->n_open++] = (struct incident_open){
			.ring = rank, .tid = 7, .depth = 0, .step = 80, .mark = DREC_MARK_STEP_BEGIN, .name = "train"};
		if (!inside[rank])
			continue;
		struct incident_open *open = &made->open[incident->n_open++];
		*open = (struct incident_open){.ring = rank, .tid = 7, .depth = 1, .step = -1};
		snprintf(open->name, sizeof(open->name), "%s", inside[rank]);
	}
	incident->rings = made->rings;
	incident->n_rings = ranks;
	incident->open = made->open;
	incident->n_firings = 1;
	snprintf(incident->firing[0].trigger, sizeof(incident->firing[0].trigger), "%s", trigger);
	incident->firing[0].source = noticed + 1;
	incident->firing[0].rank = noticed;
	incident->firing[0].step = 80;
	incident->firing[0].t0_ns = T0_NS;
	incident->firing[0].detected_ns = T0_NS + 1500000000;
	return made;
}

static void expect(struct made *made, const char *sentence)
{
	incident_sentence(&made->incident, made->text, sizeof(made->text));
	ck_assert_str_eq(made->text, sentence);
	free(made);
}

START_TEST(the_rank_that_the_others_wait_for)
{
	const char *inside[] = {"all_reduce", "all_reduce", "all_reduce", "load"};
	expect(make("stall", 1, inside, 4),
	       "Rank 3 stopped in \"load\" at step 80, 07:52:30.595 UTC; 3 ranks wait in \"all_reduce\"; it had not "
	       "moved on when this was noticed after 1.5 s.");
}
END_TEST

START_TEST(one_of_three)
{
	const char *inside[] = {NULL, "all_reduce", "all_reduce"};
	expect(make("stall", 2, inside, 3),
	       "Rank 0 stopped at step 80, 07:52:30.595 UTC; 2 ranks wait in \"all_reduce\"; it had not moved on when "
	       "this was noticed after 1.5 s.");
}
END_TEST

START_TEST(nobody_stands_apart)
{
	const char *alike[] = {"all_reduce", "all_reduce", "all_reduce", "all_reduce"};
	const char *half[] = {"all_reduce", "all_reduce", "load", "load"};
	const char *two[] = {"all_reduce", "load"};
	const char *idle[] = {"all_reduce", "load", "", ""};
	const char *rest = " at step 80, 07:52:30.595 UTC; it had not moved on when this was noticed after 1.5 s.";
	char sentence[ROOM];
	snprintf(sentence, sizeof(sentence), "Rank 1 stopped in \"all_reduce\"%s", rest);
	expect(make("stall", 1, alike, 4), sentence);
	expect(make("stall", 1, half, 4), sentence);
	snprintf(sentence, sizeof(sentence), "Rank 1 stopped in \"load\"%s", rest);
	expect(make("stall", 1, two, 2), sentence);
	expect(make("stall", 1, idle, 4), sentence);
}
END_TEST

/* Those that hang in another job's collective do not say which of this job's ranks stands apart. */
START_TEST(another_job_beside)
{
	const char *inside[] = {"load", "all_reduce", "all_reduce", "compute", "compute", "compute"};
	struct made *made = make("stall", 1, inside, 6);
	for (unsigned rank = 0; rank < 6; rank++)
		snprintf(made->rings[rank].job, sizeof(made->rings[rank].job), rank < 3 ? "mine" : "another");
	ck_assert_str_eq(incident_job(&made->incident), "mine");
	ck_assert_uint_eq(incident_rank(&made->incident), 0);
	made->incident.firing[0].source = 5;
	made->incident.firing[0].rank = 4;
	ck_assert_str_eq(incident_job(&made->incident), "another");
	ck_assert_uint_eq(incident_rank(&made->incident), 4);
	made->incident.firing[0].source = 2;
	expect(made, "Rank 0 stopped in \"load\" at step 80, 07:52:30.595 UTC; 2 ranks wait in \"all_reduce\"; it had "
		     "not moved on when this was noticed after 1.5 s.");
}
END_TEST

START_TEST(all_stop_at_once)
{
	const char *inside[] = {"all_reduce", "all_reduce", "all_reduce", "all_reduce"};
	struct made *made = make("stall", 1, inside, 4);
	made->incident.more_firings = 3;
	expect(made, "All 4 ranks stopped in \"all_reduce\" at step 80, 07:52:30.595 UTC; it had not moved on when this "
		     "was noticed after 1.5 s.");
}
END_TEST

/* Killed in mid-step, it holds up the others, and their stall is noticed first. */
START_TEST(the_others_wait_for_a_dead_one)
{
	const char *inside[] = {"all_reduce", "all_reduce", "all_reduce", "load"};
	struct made *made = make("stall", 1, inside, 4);
	made->rings[3].dead = true;
	expect(made, "Rank 3 died in \"load\" at step 80, 07:52:30.595 UTC; 3 ranks wait in \"all_reduce\"; it had not "
		     "moved on when this was noticed after 1.5 s.");
}
END_TEST

/* Known some steps later: the step at which it was noticed is not the one where it began. */
START_TEST(a_shift_has_the_time_of_its_first_step)
{
	const char *inside[] = {""};
	struct made *made = make("shift", 0, inside, 1);
	snprintf(made->incident.firing[0].evidence, sizeof(made->incident.firing[0].evidence),
		 "step has been taking 112 ms since step 73, 11.0 %% more than the 101 ms before");
	expect(made, "Rank 0, since 07:52:30.595 UTC: step has been taking 112 ms since step 73, 11.0 % more than the "
		     "101 ms before.");
}
END_TEST

START_TEST(a_command_that_failed)
{
	const char *inside[] = {"", ""};
	struct made *made = make("crash", 0, inside, 2);
	made->incident.firing[0].step = -1;
	snprintf(made->incident.firing[0].evidence, sizeof(made->incident.firing[0].evidence),
		 "the command exited with status 7; inside \"load\" for 1.0 s");
	expect(made, "The command exited with status 7 at 07:52:30.595 UTC.");
}
END_TEST

START_TEST(a_rank_that_died)
{
	const char *inside[] = {"load"};
	expect(make("crash", 0, inside, 1),
	       "Rank 0 ended in \"load\" at step 80, 07:52:30.595 UTC without a closing mark.");
}
END_TEST

START_TEST(short_steps_have_digits)
{
	const char *inside[] = {""};
	struct made *made = make("latency_spike", 0, inside, 1);
	struct triggers_firing *firing = &made->incident.firing[0];
	snprintf(firing->series, sizeof(firing->series), "step");
	firing->value = 1.77e6;
	firing->expected = 1.16e6;
	firing->ratio = 1.54;
	expect(made, "Rank 0 took 1.8 ms for \"step\" at step 80, 07:52:30.595 UTC: 1.5 x its usual 1.2 ms.");
}
END_TEST

/* The slow step is seen on all ranks at once; which is noticed first is chance. */
START_TEST(a_straggler_that_joined)
{
	const char *inside[] = {"", "", ""};
	struct made *made = make("difference", 0, inside, 3);
	struct triggers_firing *firing = made->incident.firing;
	snprintf(firing[0].series, sizeof(firing[0].series), "step");
	snprintf(firing[0].evidence, sizeof(firing[0].evidence), "step 80 took 196 ms");
	firing[1] = firing[0];
	snprintf(firing[1].trigger, sizeof(firing[1].trigger), "straggler");
	firing[1].rank = 2;
	made->incident.n_firings = 2;
	ck_assert_uint_eq(incident_rank(&made->incident), 2);
	expect(made,
	       "Rank 0, at step 80, 07:52:30.595 UTC: step 80 took 196 ms; rank 2 is behind its peers.");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sentence");
	TCase *stall = tcase_create("stall");
	tcase_add_test(stall, the_rank_that_the_others_wait_for);
	tcase_add_test(stall, one_of_three);
	tcase_add_test(stall, nobody_stands_apart);
	tcase_add_test(stall, another_job_beside);
	tcase_add_test(stall, all_stop_at_once);
	tcase_add_test(stall, the_others_wait_for_a_dead_one);
	suite_add_tcase(suite, stall);
	TCase *crash = tcase_create("crash");
	tcase_add_test(crash, a_command_that_failed);
	tcase_add_test(crash, a_rank_that_died);
	suite_add_tcase(suite, crash);
	TCase *spike = tcase_create("latency spike");
	tcase_add_test(spike, short_steps_have_digits);
	suite_add_tcase(suite, spike);
	TCase *shift = tcase_create("shift");
	tcase_add_test(shift, a_shift_has_the_time_of_its_first_step);
	tcase_add_test(shift, a_straggler_that_joined);
	suite_add_tcase(suite, shift);
	return test_run(suite);
}
