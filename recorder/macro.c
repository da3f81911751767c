/* SPDX-License-Identifier: Apache-2.0 */
#include "macro.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "plain_text.h"

/* The finest width in which [a, b] has few enough bins. */
static int64_t choose_width(const struct reducer_tiers_options *options, int64_t length_ns)
{
	for (unsigned i = 0; i < options->tiers; i++)
		if (length_ns / options->tier[i].width_ns < MACRO_BINS_MAX)
			return options->tier[i].width_ns;
	int64_t width = options->tier[options->tiers - 1].width_ns;
	return width * (length_ns / width / MACRO_BINS_MAX + 1);
}

static const char *kind_name(enum reducer_row_kind kind)
{
	return kind == REDUCER_ROW_SPANS ? "spans" : kind == REDUCER_ROW_COUNTER ? "counter" : "instants";
}

/* Names are whatever a producer wrote. */
static void print_text(FILE *out, const char *data, size_t bytes)
{
	const unsigned char *text = (const unsigned char *)data;
	fputc('"', out);
	for (size_t i = 0; i < bytes;) {
		size_t length = plain_text_character(data + i, bytes - i);
		if (text[i] < 0x20)
			fprintf(out, "\\u%04x", text[i]);
		else if (length == 0)
			fputs("\\ufffd", out);
		else if (text[i] == '"' || text[i] == '\\')
			fprintf(out, "\\%c", text[i]);
		else
			fwrite(text + i, 1, length, out);
		i += length ? length : 1;
	}
	fputc('"', out);
}

static void print_number(FILE *out, double value)
{
	if (isfinite(value))
		fprintf(out, "%.17g", value);
	else
		fputs("null", out);
}

static void print_bin(FILE *out, const struct reducer_tiers *tiers, enum reducer_row_kind kind, size_t index,
		      const struct reducer_bin *bin)
{
	struct reducer_text name = reducer_tiers_name_text(tiers, bin->name);
	fprintf(out, "[%zu,%llu", index, (unsigned long long)bin->count);
	if (kind == REDUCER_ROW_SPANS) {
		fprintf(out, ",%lld,%lld,", (long long)bin->busy_ns, (long long)bin->longest_ns);
		print_text(out, name.data, name.bytes);
	} else if (kind == REDUCER_ROW_COUNTER) {
		const double values[] = {bin->min, bin->max, bin->last};
		for (int i = 0; i < 3; i++) {
			fputc(',', out);
			print_number(out, values[i]);
		}
	} else {
		fputc(',', out);
		print_text(out, name.data, name.bytes);
	}
	fputc(']', out);
}

static void print_row(FILE *out, const struct reducer_tiers *tiers, const struct reducer_tiers_row_info *info,
		      const struct reducer_bin *bins, size_t count, int *rows)
{
	int printed = 0;
	for (size_t i = 0; i < count; i++) {
		if (bins[i].count == 0 && bins[i].busy_ns == 0)
			continue;
		if (!printed) {
			fprintf(out, "%s{\"source\":", (*rows)++ ? "," : "");
			print_text(out, info->source.data, info->source.bytes);
			fputs(",\"track\":", out);
			print_text(out, info->key.data, info->key.bytes);
			fputs(",\"label\":", out);
			print_text(out, info->label.data, info->label.bytes);
			fprintf(out, ",\"kind\":\"%s\",\"depth\":%u,\"bins\":[", kind_name(info->kind), info->depth);
		}
		if (printed++)
			fputc(',', out);
		print_bin(out, tiers, info->kind, i, &bins[i]);
	}
	if (printed)
		fputs("]}", out);
}

int macro_json(struct reducer_tiers *tiers, int64_t a_ns, int64_t b_ns, char **ret_text, size_t *ret_bytes)
{
	struct reducer_tiers_stats stats;
	reducer_tiers_stats(tiers, &stats);
	int64_t width = choose_width(&stats.options, b_ns > a_ns ? b_ns - a_ns : 0);
	int64_t from = a_ns - a_ns % width;
	size_t count = (size_t)((b_ns - from) / width + 1);
	char *text = NULL;
	size_t bytes = 0;
	int rows = 0;
	if (b_ns < a_ns)
		return -EINVAL;
	struct reducer_bin *bins = calloc(count, sizeof(*bins));
	FILE *out = bins ? open_memstream(&text, &bytes) : NULL;
	if (!out) {
		free(bins);
		return -ENOMEM;
	}
	fprintf(out, "{\"schema\":\"driverec.macro/1\",\"from_ns\":\"%lld\",\"width_ns\":\"%lld\",\"bins\":%zu,\"rows\":[",
		(long long)from, (long long)width, count);
	for (uint32_t row = 0; row < reducer_tiers_rows(tiers) && ftell(out) < MACRO_BYTES_MAX; row++) {
		struct reducer_tiers_row_info info;
		if (reducer_tiers_row_info(tiers, row, &info) == 0 &&
		    reducer_tiers_read(tiers, row, from, width, count, bins) >= 0)
			print_row(out, tiers, &info, bins, count, &rows);
	}
	fputs("]}\n", out);
	free(bins);
	if (fclose(out) != 0) {
		free(text);
		return -ENOMEM;
	}
	*ret_text = text;
	*ret_bytes = bytes;
	return 0;
}
