/*
 * How many small commits a program makes per second from one handle, beside as many bare flushes of as many bytes in
 * the same run: the part of a commit that is not the disk.
 *
 *   bench_commits NEW_FOLDER [COMMITS]
 */
#include <fcntl.h>
#include <sluice/sluice.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ROUND 100u
#define BYTES 8192u /* that a commit writes */

static double now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void check(sluice_status status, const sluice_error *err)
{
    if (status == SLUICE_OK)
        return;
    (void)fprintf(stderr, "%s\n", err->text);
    exit(1);
}

/* Bare: writes and flushes inside a file whose blocks are there already, as a log's are. */
static double flushes(int fd, unsigned count)
{
    static char bytes[BYTES];
    double start = now();
    for (unsigned i = 0; i < count; i++) {
        bytes[0]++;
        if (pwrite(fd, bytes, BYTES, (off_t)i * BYTES) != BYTES || fdatasync(fd) != 0)
            exit(1);
    }
    return now() - start;
}

static int scratch(const char *folder, unsigned count)
{
    static char zeros[BYTES];
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/flushes", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    for (unsigned i = 0; fd >= 0 && i < count; i++)
        if (pwrite(fd, zeros, BYTES, (off_t)i * BYTES) != BYTES)
            exit(1);
    if (fd < 0 || fsync(fd) != 0)
        exit(1);
    return fd;
}

static double commits(sluice_graph *graph, sluice_batch *batch, int64_t first, unsigned count)
{
    sluice_error err = {0};
    double start = now();
    for (unsigned i = 0; i < count; i++) {
        sluice_batch_clear(batch);
        sluice_batch_begin(batch, SLUICE_INSERT, SLUICE_NODE, "P");
        sluice_batch_int64(batch, SLUICE_SET, "id", first + i);
        sluice_batch_text(batch, SLUICE_SET, "name", "somebody", 8);
        check(sluice_batch_end(batch, &err), &err);
        check(sluice_commit(graph, batch, NULL, NULL, &err), &err);
    }
    return now() - start;
}

int main(int argc, char **argv)
{
    static const char schema[] =
        "{\"nodes\":{\"P\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\",\"name\":\"string?\"}}}}";
    unsigned count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1000, done = 0;
    char path[4096];
    sluice_error err = {0};
    sluice_graph *graph = NULL;
    sluice_batch *batch = NULL;
    double bare = 0, whole = 0;
    if (argc < 2 || mkdir(argv[1], 0700) != 0) {
        (void)fprintf(stderr, "usage: bench_commits NEW_FOLDER [COMMITS]\n");
        return 2;
    }
    (void)snprintf(path, sizeof path, "%s/graph", argv[1]);
    check(sluice_create(path, schema, sizeof schema - 1, SLUICE_OPTIMISTIC, &graph, &err), &err);
    check(sluice_batch_new(&batch, &err), &err);
    int fd = scratch(argv[1], ROUND);
    while (done < count) { /* in turns, so that both meet the same disk */
        bare += flushes(fd, ROUND);
        whole += commits(graph, batch, done, ROUND);
        done += ROUND;
    }
    printf("flushes  %8.0f /s\ncommits  %8.0f /s\nratio    %8.2f\nbeside the flush %.0f us\n", done / bare,
           done / whole, bare / whole, (whole - bare) / done * 1e6);
    sluice_batch_free(batch);
    sluice_close(graph);
    (void)close(fd);
    return 0;
}
