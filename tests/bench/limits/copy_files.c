/*
 * The bare copy that rewriting files is measured against: copy_files TARGET FILE... reads each and writes it to
 * TARGET.0, TARGET.1, ..., starts write-back as it goes, and flushes each. Prints a JSON line as the peers do.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CHUNK (1u << 20)

static double now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double copy(const char *from_path, const char *to_path)
{
    static char chunk[CHUNK];
    int from = open(from_path, O_RDONLY | O_CLOEXEC), to = open(to_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    off_t at = 0;
    ssize_t length = 0;
    while (from >= 0 && to >= 0 && (length = read(from, chunk, sizeof chunk)) > 0) {
        if (write(to, chunk, (size_t)length) != length)
            length = -1;
        if (length < 0)
            break;
        (void)sync_file_range(to, at, length, SYNC_FILE_RANGE_WRITE);
        at += length;
    }
    if (from < 0 || to < 0 || length < 0 || fsync(to) != 0) {
        perror(to < 0 ? to_path : from_path);
        exit(1);
    }
    (void)close(from);
    (void)close(to);
    return (double)at;
}

int main(int argc, char **argv)
{
    double bytes = 0, start = now();
    if (argc < 3) {
        (void)fputs("usage: copy_files TARGET FILE...\n", stderr);
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s.%d", argv[1], i - 2);
        bytes += copy(argv[i], path);
    }
    double seconds = now() - start;
    printf("{\"measure\": \"copy\", \"unit\": \"s\", \"value\": %.6f}\n{\"measure\": \"bandwidth\", \"unit\": "
           "\"MB/s\", \"value\": %.3f}\n",
           seconds, bytes / seconds / 1e6);
    return 0;
}
