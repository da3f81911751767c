/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope/terminal.h: the terminal in its alternate screen, keys one by one, and back again however the process
 * ends.
 *
 * One at a time. What was changed is undone by scope_terminal_close(), at exit, before a signal ends the
 * process, and while it is stopped (Ctrl-Z); after SIGKILL `reset` does it.
 */
#ifndef RECORDER_SCOPE_TERMINAL_H
#define RECORDER_SCOPE_TERMINAL_H

#include <stdbool.h>

#include "grid.h"
#include "view.h"

/* Whether stdout is a terminal that can be drawn on. */
bool scope_terminal_there(void);
/* What the environment says of it: NO_COLOR and TERM; LC_ALL, LC_CTYPE or LANG, without asking for the
 * locale. */
bool scope_terminal_color(void);
bool scope_terminal_utf8(void);
/* Columns and lines; 80 x 24 where nobody says. */
void scope_terminal_size(unsigned *ret_width, unsigned *ret_height);

/* Takes it over. 0 or -errno. */
int scope_terminal_open(bool color);
void scope_terminal_close(void);

/* Writes the lines that differ from what is shown. 0 or -errno: the terminal is gone. */
int scope_terminal_show(const struct scope_grid *grid);

enum scope_terminal_event {
	SCOPE_TERMINAL_TIME, /* `ms` have passed */
	SCOPE_TERMINAL_KEY,
	SCOPE_TERMINAL_SIZE, /* another size, or it was taken over anew: all is to be drawn */
	SCOPE_TERMINAL_END,  /* a signal or a hang-up; *ret_signal is it, 0 = end of input */
};
enum scope_terminal_event scope_terminal_wait(int ms, enum scope_key *ret_key, int *ret_signal);

#endif
