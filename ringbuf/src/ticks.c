/* SPDX-License-Identifier: Apache-2.0 */
#include "ticks.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static size_t read_clocksource(char *text, size_t room)
{
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t count = read(fd, text, room - 1);
	close(fd);
	if (count < 0)
		count = 0;
	text[count] = 0;
	return strcspn(text, "\n");
}

uint32_t ticks_clocksource(void)
{
	char text[64] = "";
	size_t bytes = read_clocksource(text, sizeof(text));
	uint32_t hash = 0x811c9dc5u;
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (uint8_t)text[i]) * 0x01000193u;
	return bytes ? hash : 0;
}

/*
 * The TSC is taken only where the kernel itself keeps time by it: then it is invariant and the same on all
 * cores. Under another clocksource (kvm-clock, hpet) a migration may change its rate.
 */
static int counter_trusted(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;
	char text[64] = "";
	if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & (1u << 8)))
		return 0;
	return read_clocksource(text, sizeof(text)) == 3 && memcmp(text, "tsc", 3) == 0;
#elif defined(__aarch64__)
	return 1;
#else
	return 0;
#endif
}

uint32_t ticks_choose(uint32_t asked)
{
#if defined(__aarch64__)
	uint32_t counter = DREC_CLOCK_CNTVCT;
#else
	uint32_t counter = DREC_CLOCK_TSC;
#endif
	if (asked == DREC_CLOCK_MONO || asked == DREC_CLOCK_UNIX)
		return asked;
	return counter_trusted() ? counter : DREC_CLOCK_MONO;
}
