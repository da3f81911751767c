/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain escape codes that every terminal since the VT100 knows, and the alternate screen of xterm: what is
 * needed is little enough to need no terminal database and no library.
 *
 * Handlers of signals that end it set a flag and interrupt a write() to a terminal that takes nothing any
 * more; a signal that comes just before a wait is seen at its end, 250 ms later. Those of a crash restore the
 * terminal with what is safe in a handler: poll(), write() and tcsetattr().
 */
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { INPUT_BYTES = 256, CURSOR_BYTES = 32 };

#define ENTER "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
#define LEAVE "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"

static const int end_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
enum {
	END_SIGNALS = sizeof(end_signals) / sizeof(end_signals[0]),
	CRASH_SIGNALS = sizeof(crash_signals) / sizeof(crash_signals[0])
};

static struct {
	volatile sig_atomic_t taken; /* the terminal is as we want it, not as it was */
	int input_fd;                /* -1: there are no keys */
	struct termios before;
	bool color;
	struct sigaction crash_before[CRASH_SIGNALS];
	char input[INPUT_BYTES];
	size_t input_bytes;
	unsigned width, height; /* of what is shown; 0 = nothing is */
	char *shown[SCOPE_HEIGHT_MAX];
} terminal = {.input_fd = -1};

/* What handlers have seen. */
static volatile sig_atomic_t ended_by, resized, stopped;

bool scope_terminal_there(void)
{
	const char *term = getenv("TERM");
	return isatty(STDOUT_FILENO) && term && term[0] && strcmp(term, "dumb") != 0;
}

bool scope_terminal_color(void)
{
	const char *no = getenv("NO_COLOR");
	return !(no && no[0]) && scope_terminal_there();
}

bool scope_terminal_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);
		if (!value || !value[0])
			continue;
		return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

void scope_terminal_size(unsigned *ret_width, unsigned *ret_height)
{
	struct winsize size;
	bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
	*ret_width = known ? size.ws_col : 80;
	*ret_height = known ? size.ws_row : 24;
}

static int write_all(const char *bytes, size_t count)
{
	while (count > 0) {
		ssize_t done = write(STDOUT_FILENO, bytes, count);
		if (done < 0 && ended_by)
			return -EINTR;
		if (done < 0 && errno == EAGAIN)
			poll(&(struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT}, 1, 1000);
		else if (done < 0 && errno != EINTR)
			return -errno;
		if (done > 0) {
			bytes += done;
			count -= (size_t)done;
		}
	}
	return 0;
}

/* Safe in a handler. Never waits long for a terminal that takes nothing any more. */
static void give_back(void)
{
	struct pollfd writable = {.fd = STDOUT_FILENO, .events = POLLOUT};
	if (!terminal.taken)
		return;
	terminal.taken = 0;
	if (terminal.input_fd >= 0)
		tcsetattr(terminal.input_fd, TCSANOW, &terminal.before);
	if (poll(&writable, 1, 1000) > 0) {
		ssize_t wrote = write(STDOUT_FILENO, LEAVE, sizeof(LEAVE) - 1);
		(void)wrote;
	}
}

static int take(void)
{
	if (terminal.input_fd >= 0) {
		if (tcgetattr(terminal.input_fd, &terminal.before) < 0)
			return -errno;
		struct termios raw = terminal.before;
		/* Ctrl-C and Ctrl-Z stay signals. */
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
		raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL | INLCR | IGNCR);
		raw.c_cc[VMIN] = 0;
		raw.c_cc[VTIME] = 0;
		if (tcsetattr(terminal.input_fd, TCSANOW, &raw) < 0)
			return -errno;
	}
	terminal.taken = 1;
	terminal.width = terminal.height = 0;
	return write_all(ENTER, sizeof(ENTER) - 1);
}

static void on_signal(int number)
{
	if (number == SIGWINCH)
		resized = 1;
	else if (number == SIGTSTP)
		stopped = 1;
	else if (!ended_by)
		ended_by = number;
}

/* Gives the terminal back, then lets happen what would have happened. */
static void on_crash(int number, siginfo_t *info, void *context)
{
	(void)context;
	give_back();
	for (int i = 0; i < CRASH_SIGNALS; i++)
		if (crash_signals[i] == number)
			sigaction(number, &terminal.crash_before[i], NULL);
	/* A fault comes again when this returns; what somebody sent does not. */
	if (info->si_code <= 0)
		raise(number);
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	for (int i = 0; i < END_SIGNALS; i++) {
		struct sigaction before;
		/* Under nohup a hang-up stays ignored. */
		if (sigaction(end_signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(end_signals[i], &action, NULL);
	}
	sigaction(SIGWINCH, &action, NULL);
	sigaction(SIGTSTP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	action = (struct sigaction){.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO};
	for (int i = 0; i < CRASH_SIGNALS; i++)
		sigaction(crash_signals[i], &action, &terminal.crash_before[i]);
}

int scope_terminal_open(bool color)
{
	terminal.color = color;
	terminal.input_fd =
		isatty(STDIN_FILENO) ? STDIN_FILENO : open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
	catch_signals();
	atexit(give_back);
	return take();
}

static void forget_shown(void)
{
	for (unsigned i = 0; i < SCOPE_HEIGHT_MAX; i++) {
		free(terminal.shown[i]);
		terminal.shown[i] = NULL;
	}
}

void scope_terminal_close(void)
{
	give_back();
	forget_shown();
	if (terminal.input_fd > STDERR_FILENO)
		close(terminal.input_fd);
	terminal.input_fd = -1;
}

static size_t put_number(char *out, unsigned number)
{
	char digits[12];
	size_t count = 0, used = 0;
	do
		digits[count++] = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	while (count > 0)
		out[used++] = digits[--count];
	return used;
}

/* "go to the line's begin", the line, "blank the rest". */
static size_t put_line(char *out, unsigned row, const char *line, size_t bytes)
{
	size_t used = 0;
	memcpy(out, "\x1b[", 2);
	used = 2 + put_number(out + 2, row + 1);
	memcpy(out + used, ";1H", 3);
	used += 3;
	memcpy(out + used, line, bytes);
	used += bytes;
	memcpy(out + used, "\x1b[K", 3);
	return used + 3;
}

int scope_terminal_show(const struct scope_grid *grid)
{
	static char out[SCOPE_HEIGHT_MAX * (SCOPE_LINE_BYTES_MAX + CURSOR_BYTES)];
	size_t used = 0;
	if (grid->width != terminal.width || grid->height != terminal.height) {
		forget_shown();
		memcpy(out, "\x1b[2J", 4);
		used = 4;
	}
	for (unsigned row = 0; row < grid->height; row++) {
		char line[SCOPE_LINE_BYTES_MAX];
		size_t bytes = scope_grid_line(grid, row, terminal.color, line);
		if (terminal.shown[row] && strcmp(terminal.shown[row], line) == 0)
			continue;
		free(terminal.shown[row]);
		terminal.shown[row] = strdup(line); /* without memory it is drawn again next time */
		used += put_line(out + used, row, line, bytes);
	}
	terminal.width = grid->width;
	terminal.height = grid->height;
	return write_all(out, used);
}

/* The next key of what was read; what means nothing is passed over. */
static enum scope_key next_key(void)
{
	enum scope_key key = SCOPE_KEY_NONE;
	while (terminal.input_bytes > 0 && key == SCOPE_KEY_NONE) {
		size_t taken;
		key = scope_key_of(terminal.input, terminal.input_bytes, &taken);
		if (taken == 0)
			break;
		memmove(terminal.input, terminal.input + taken, terminal.input_bytes - taken);
		terminal.input_bytes -= taken;
	}
	return key;
}

/* False at the end of the input. */
static bool read_keys(short events)
{
	ssize_t got = read(terminal.input_fd, terminal.input + terminal.input_bytes,
			   INPUT_BYTES - terminal.input_bytes);
	if (got > 0)
		terminal.input_bytes += (size_t)got;
	else if (terminal.input_bytes == INPUT_BYTES)
		terminal.input_bytes = 0;
	return got > 0 || (!(events & POLLHUP) && (got == 0 || errno == EAGAIN || errno == EINTR));
}

/* Ctrl-Z: the terminal is the shell's until we go on. */
static void stop(void)
{
	give_back();
	raise(SIGSTOP);
	take();
	resized = 1;
}

enum scope_terminal_event scope_terminal_wait(int ms, enum scope_key *ret_key, int *ret_signal)
{
	struct pollfd keys = {.fd = terminal.input_fd, .events = POLLIN};
	*ret_signal = 0;
	*ret_key = next_key();
	if (*ret_key != SCOPE_KEY_NONE)
		return SCOPE_TERMINAL_KEY;
	int ready = ended_by || stopped || resized ? 0 : poll(&keys, 1, ms);
	if (stopped) {
		stopped = 0;
		stop();
	}
	*ret_signal = ended_by;
	if (ended_by || (ready > 0 && !read_keys(keys.revents)))
		return SCOPE_TERMINAL_END;
	if (resized) {
		resized = 0;
		return SCOPE_TERMINAL_SIZE;
	}
	*ret_key = next_key();
	return *ret_key != SCOPE_KEY_NONE ? SCOPE_TERMINAL_KEY : SCOPE_TERMINAL_TIME;
}
