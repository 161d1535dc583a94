/*
 * The user's own files, outside any graph: inputs of a load, schema files, exports, rejects.
 *
 * Their paths are the user's and links in them are followed; they stand in terminal texts only, never in messages. "-"
 * is standard input or output. Nothing here belongs to the durability contract: an output is synced when its caller
 * asks for it. A handle may be inherited over fork: pf_input_read_at may be used by all, pf_input_read by one process.
 */
#ifndef PLATFORM_USER_FILE_H
#define PLATFORM_USER_FILE_H

#include "platform/buffer.h"
#include "platform/fail.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- inputs ---- */

typedef struct pf_input pf_input;

/* What a regular input looked like; two equal ones are, as far as the system tells, the same bytes. */
typedef struct pf_input_identity {
    uint64_t device, inode, size;
    int64_t modified_ns, changed_ns;
} pf_input_identity;

/* USAGE when there is no such file or it is a folder; PERMISSION when it may not be read. Never waits: a named pipe is
 * open before its writer is there. */
sluice_status pf_input_open(const char *path, pf_input **ret_input, sluice_error *err);
void pf_input_close(pf_input *input); /* NULL allowed */
/* From here on pf_input_open takes these names as those of open descriptors, which somebody else opened with rights
 * that this process need not have; "-" may be among them. Both lists stay the caller's and must live until the next
 * call; a count of 0 ends it. What is given is known by its descriptor alone: whether its name means another file by
 * now is not asked. */
void pf_inputs_give(const char *const *names, const int *descriptors, uint32_t count);
/* True: a regular file, read by ranges, its size known. False: a pipe, a terminal, a device or standard input, read
 * once from front to end. */
bool pf_input_is_regular(const pf_input *input);
/* Both are not regular, and the same one: each would get a part of its bytes. */
bool pf_input_is_same_stream(const pf_input *a, const pf_input *b);
/* Does this path name the regular file that the input is? */
bool pf_input_is_file(const pf_input *input, const char *path);
/* The path as it was given, for the terminal ("standard input" for "-"). */
const char *pf_input_name(const pf_input *input);
/* The descriptor behind it, for the list of those that workers inherit (wk_job). */
int pf_input_descriptor(const pf_input *input);
/* As of now. All zero for what is not regular. */
sluice_status pf_input_identify(pf_input *input, pf_input_identity *ret_identity, sluice_error *err);
/* INPUT_CHANGED when the file, or the file that its name stands for, is no longer the one of `identity`. Nothing to
 * check on what is not regular. */
sluice_status pf_input_check(pf_input *input, const pf_input_identity *identity, sluice_error *err);
/* Up to `length` bytes at `offset` of a regular input; fewer only at its end. */
sluice_status pf_input_read_at(pf_input *input, uint64_t offset, void *bytes, size_t length, size_t *ret_got,
                               sluice_error *err);
/* Waits at most so long (-1: for ever) until pf_input_read would answer at once; a signal may end it early. */
sluice_status pf_input_wait(pf_input *input, int timeout_ms, bool *ret_ready, sluice_error *err);
/* The next up to `length` bytes of any input; 0 only at its end. Waits for a pipe's writer, also for its first. */
sluice_status pf_input_read(pf_input *input, void *bytes, size_t length, size_t *ret_got, sluice_error *err);
/* A whole small file or stream, appended to `buffer`; RESOURCE_LIMIT when it holds more than `limit` bytes. */
sluice_status pf_input_read_all(const char *path, size_t limit, pf_buffer *buffer, sluice_error *err);

/* ---- scratch ---- */

/* A file without a name in TMPDIR (default /var/tmp), gone with its last descriptor: bytes to be read again. */
typedef struct pf_scratch pf_scratch;
sluice_status pf_scratch_open(pf_scratch **ret_scratch, sluice_error *err);
sluice_status pf_scratch_append(pf_scratch *scratch, const void *bytes, size_t length, sluice_error *err);
/* As pf_input_read_at. */
sluice_status pf_scratch_read_at(pf_scratch *scratch, uint64_t offset, void *bytes, size_t length, size_t *ret_got,
                                 sluice_error *err);
uint64_t pf_scratch_bytes(const pf_scratch *scratch);
int pf_scratch_descriptor(const pf_scratch *scratch);
/* What was written so far, as a regular input that is called `name`; on a descriptor of its own. */
sluice_status pf_scratch_input(const pf_scratch *scratch, const char *name, pf_input **ret_input, sluice_error *err);
void pf_scratch_close(pf_scratch *scratch); /* NULL allowed */

/* ---- outputs ---- */

typedef struct pf_output pf_output;

typedef enum pf_output_mode {
    PF_OUTPUT_NEW,     /* ALREADY_EXISTS when something is there */
    PF_OUTPUT_REPLACE, /* emptied when it is there */
    PF_OUTPUT_SWAP     /* has its name only once it is closed whole; what is there stays until then, or is written to
                        * directly when it is no regular file */
} pf_output_mode;

/* USAGE when the folder is missing or the path is a folder. Permissions follow the umask. */
sluice_status pf_output_open(const char *path, pf_output_mode mode, pf_output **ret_output, sluice_error *err);
/* Buffered. After an error every later call on this output fails with it. */
sluice_status pf_output_write(pf_output *output, const void *bytes, size_t length, sluice_error *err);
/* Hands what is buffered to the system. */
sluice_status pf_output_flush(pf_output *output, sluice_error *err);
/* Flushes, syncs when asked (content, and the name of a new file), closes. An output is complete only when this
 * succeeded; the handle is gone in any case. NULL allowed. */
sluice_status pf_output_close(pf_output *output, bool sync, sluice_error *err);
/* Gives up: closes without flushing and removes the file if this output made it. NULL allowed. */
void pf_output_discard(pf_output *output);
uint64_t pf_output_bytes(const pf_output *output); /* given to pf_output_write so far */
/* The descriptor behind it, to wait for. */
int pf_output_descriptor(const pf_output *output);
/* Has it failed because nobody reads it any more? */
bool pf_output_is_unread(const pf_output *output);

/* The folder that a path lies in, absolute and with a slash at its end, by the text alone (links are not resolved). */
sluice_status pf_path_folder(const char *path, char **ret_folder, sluice_error *err);
/* Would a file of this path lie in this folder, at any depth? Links resolved; false where a folder is not there. */
bool pf_path_is_inside(const char *path, const char *folder);

/* Makes one folder for outputs; ALREADY_EXISTS when something is there, USAGE when its parent is missing. */
sluice_status pf_output_make_folder(const char *path, sluice_error *err);

#endif
