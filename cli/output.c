/*
 * Printing (see cli/output.h).
 */
#include "cli/output.h"
#include "platform/check.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPACES_BETWEEN 2u

sluice_status cli_write(cli_run *run, const void *bytes, size_t length, sluice_error *err)
{
    return pf_output_write(run->out, bytes, length, err);
}

sluice_status cli_print(cli_run *run, sluice_error *err, const char *fmt, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, fmt);
    int length = vasprintf(&text, fmt, args);
    va_end(args);
    if (length < 0)
        return pf_fail_memory(err);
    sluice_status status = cli_write(run, text, (size_t)length, err);
    free(text);
    return status;
}

void cli_json_begin(cli_json *document)
{
    document->buffer = (pf_buffer){0};
    st_json_begin(&document->json, &document->buffer);
}

sluice_status cli_json_end(cli_run *run, cli_json *document, sluice_error *err)
{
    sluice_status status = st_json_end(&document->json, true, err);
    if (status == SLUICE_OK)
        status = cli_write(run, document->buffer.data, document->buffer.length, err);
    pf_buffer_free(&document->buffer);
    return status;
}

void cli_time_text(int64_t microseconds, char ret_text[CLI_TIME_TEXT])
{
    int64_t day_us = INT64_C(86400000000);
    int64_t days = microseconds / day_us;
    int64_t rest = microseconds % day_us;
    if (rest < 0) {
        rest += day_us;
        days--;
    }
    /* Days to a civil date over eras of 400 years that begin in March. */
    int64_t shifted = days + 719468;
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t day_of_era = shifted - era * 146097;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153;
    int64_t day = day_of_year - (153 * month + 2) / 5 + 1;
    month += month < 10 ? 3 : -9;
    int64_t year = year_of_era + era * 400 + (month <= 2);
    (void)snprintf(ret_text, CLI_TIME_TEXT, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", (int)year, (int)month, (int)day,
                   (int)(rest / 3600000000), (int)(rest / 60000000 % 60), (int)(rest / 1000000 % 60),
                   (int)(rest % 1000000));
}

void cli_size_text(uint64_t bytes, char ret_text[CLI_SIZE_TEXT])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    unsigned unit = 0;
    if (bytes < 1024) {
        (void)snprintf(ret_text, CLI_SIZE_TEXT, "%u bytes", (unsigned)bytes);
        return;
    }
    while (value >= 1024 * 1024) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(ret_text, CLI_SIZE_TEXT, "%.1f %s", value / 1024, units[unit]);
}

/* The length of the well-formed UTF-8 character at `bytes`; 0 when there is none. */
static size_t character_length(const unsigned char *bytes, size_t length)
{
    unsigned char first = bytes[0];
    size_t want = first < 0x80                    ? 1
                  : first >= 0xC2 && first < 0xE0 ? 2
                  : (first & 0xF0) == 0xE0        ? 3
                  : first >= 0xF0 && first < 0xF5 ? 4
                                                  : 0;
    if (want == 0 || want > length)
        return 0;
    for (size_t i = 1; i < want; i++) {
        if ((bytes[i] & 0xC0) != 0x80)
            return 0;
    }
    if ((first == 0xE0 && bytes[1] < 0xA0) || (first == 0xED && bytes[1] > 0x9F) ||
        (first == 0xF0 && bytes[1] < 0x90) || (first == 0xF4 && bytes[1] > 0x8F))
        return 0;
    return want;
}

/* Characters that a terminal acts on instead of showing: C0, DEL, C1, and those that turn the writing direction. */
static bool acts_on_terminal(const unsigned char *bytes, size_t length)
{
    if (length == 1)
        return bytes[0] < 0x20 || bytes[0] == 0x7F;
    if (length == 2)
        return bytes[0] == 0xC2 && bytes[1] < 0xA0;
    if (length == 3 && bytes[0] == 0xE2)
        return (bytes[1] == 0x80 && ((bytes[2] >= 0xA8 && bytes[2] <= 0xAE) || bytes[2] == 0x8E || bytes[2] == 0x8F)) ||
               (bytes[1] == 0x81 && bytes[2] >= 0xA6 && bytes[2] <= 0xA9);
    return false;
}

sluice_status cli_append_visible(pf_buffer *buffer, const void *text, size_t length, sluice_error *err)
{
    const unsigned char *bytes = text;
    size_t start = 0;
    for (size_t i = 0; i < length;) {
        size_t span = character_length(bytes + i, length - i);
        if (span > 0 && !acts_on_terminal(bytes + i, span)) {
            i += span;
            continue;
        }
        PF_TRY(pf_buffer_append(buffer, bytes + start, i - start, err));
        size_t hidden = span > 0 ? span : 1;
        if (bytes[i] == '\n' || bytes[i] == '\t' || bytes[i] == '\r')
            PF_TRY(pf_buffer_append_format(buffer, err, "\\%c", bytes[i] == '\n' ? 'n' : bytes[i] == '\t' ? 't' : 'r'));
        else
            for (size_t k = 0; k < hidden; k++)
                PF_TRY(pf_buffer_append_format(buffer, err, "\\x%02x", bytes[i + k]));
        i += hidden;
        start = i;
    }
    return pf_buffer_append(buffer, bytes + start, length - start, err);
}

typedef struct table_cell {
    size_t start, length;
    uint32_t width; /* characters */
} table_cell;

sluice_status cli_table_begin(pf_output *out, uint32_t columns, cli_table *ret_table, sluice_error *err)
{
    PF_ASSERT(columns > 0);
    *ret_table = (cli_table){.out = out, .columns = columns};
    ret_table->widths = calloc(columns, sizeof *ret_table->widths);
    ret_table->right = calloc(columns, sizeof *ret_table->right);
    return ret_table->widths && ret_table->right ? SLUICE_OK : pf_fail_memory(err);
}

void cli_table_right(cli_table *table, uint32_t column)
{
    table->right[column] = true;
}

static sluice_status print_padding(cli_table *table, uint32_t count, sluice_error *err)
{
    static const char spaces[] = "                                                                ";
    while (count > 0) {
        uint32_t step = count < sizeof spaces - 1 ? count : (uint32_t)sizeof spaces - 1;
        PF_TRY(pf_output_write(table->out, spaces, step, err));
        count -= step;
    }
    return SLUICE_OK;
}

static sluice_status print_kept(cli_table *table, sluice_error *err)
{
    const table_cell *cells = (const table_cell *)(const void *)table->cells.data;
    for (size_t i = 0; i < (size_t)table->rows * table->columns; i++) {
        uint32_t column = (uint32_t)(i % table->columns);
        uint32_t width = table->widths[column];
        uint32_t padding = width > cells[i].width ? width - cells[i].width : 0;
        bool last = column + 1 == table->columns;
        if (table->right[column])
            PF_TRY(print_padding(table, padding, err));
        PF_TRY(pf_output_write(table->out, table->text.data + cells[i].start, cells[i].length, err));
        if (!last)
            PF_TRY(print_padding(table, (table->right[column] ? 0 : padding) + SPACES_BETWEEN, err));
        else
            PF_TRY(pf_output_write(table->out, "\n", 1, err));
    }
    table->rows = 0;
    table->text.length = 0;
    table->cells.length = 0;
    return SLUICE_OK;
}

sluice_status cli_table_cell(cli_table *table, const void *text, size_t length, sluice_error *err)
{
    table_cell cell = {.start = table->text.length};
    PF_TRY(cli_append_visible(&table->text, text, length, err));
    cell.length = table->text.length - cell.start;
    for (size_t i = 0; i < cell.length; i++)
        cell.width += (table->text.data[cell.start + i] & 0xC0) != 0x80;
    PF_TRY(pf_buffer_append(&table->cells, &cell, sizeof cell, err));
    if (!table->settled && cell.width > table->widths[table->column])
        table->widths[table->column] = cell.width;
    if (++table->column < table->columns)
        return SLUICE_OK;
    table->column = 0;
    table->rows++;
    if (!table->settled && table->rows < CLI_TABLE_WINDOW)
        return SLUICE_OK;
    table->settled = true;
    return print_kept(table, err);
}

sluice_status cli_table_text(cli_table *table, const char *text, sluice_error *err)
{
    return cli_table_cell(table, text, strlen(text), err);
}

sluice_status cli_table_number(cli_table *table, uint64_t number, sluice_error *err)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    return cli_table_text(table, text, err);
}

sluice_status cli_table_end(cli_table *table, sluice_error *err)
{
    PF_ASSERT(table->column == 0);
    return print_kept(table, err);
}

void cli_table_free(cli_table *table)
{
    pf_buffer_free(&table->text);
    pf_buffer_free(&table->cells);
    free(table->widths);
    free(table->right);
    *table = (cli_table){0};
}
