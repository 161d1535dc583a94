/*
 * Runs a fuzz target on the files that it is given, and on all files of folders: the kept corpus, in every build. The
 * fuzzer itself needs Clang (CMakeLists.txt).
 */
#include "support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void replay_file(const char *path)
{
    uint8_t *bytes = NULL;
    size_t size = 0, room = 0;
    FILE *file = fopen(path, "rb");

    fuzz_demand(file != NULL);
    for (;;) {
        if (size == room) {
            room = room ? room * 2 : 4096;
            bytes = realloc(bytes, room);
            fuzz_demand(bytes != NULL);
        }
        size_t got = fread(bytes + size, 1, room - size, file);
        if (got == 0)
            break;
        size += got;
    }
    (void)fclose(file);
    /* Just as long as it is, so that a look behind its end is seen. */
    uint8_t *exact = malloc(size ? size : 1);
    fuzz_demand(exact != NULL);
    memcpy(exact, bytes, size);
    free(bytes);
    printf("%s\n", path);
    (void)fflush(stdout);
    (void)LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

int main(int argc, char **argv)
{
    unsigned files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (!folder) {
            replay_file(argv[i]);
            files++;
            continue;
        }
        for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
            char path[1024];
            if (entry->d_name[0] == '.')
                continue;
            fuzz_demand((size_t)snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name) < sizeof path);
            replay_file(path);
            files++;
        }
        (void)closedir(folder);
    }
    printf("%u files\n", files);
    fuzz_demand(files > 0);
    return 0;
}
