/*
 * Folders for tests on a real disk: below SLUICE_TEST_DIR when that is set, else below the current directory (the build
 * tree), which has to be on an admitted filesystem.
 */
#ifndef TESTS_SUPPORT_FOLDER_H
#define TESTS_SUPPORT_FOLDER_H

/* Makes a new, empty folder; the path is absolute and free of links. Freed by test_folder_remove. */
char *test_folder_make(void);
/* Removes it with everything in it, whatever the permissions, and frees the path. */
void test_folder_remove(char *path);
/* "path/name", to be freed by the caller. */
char *test_path(const char *path, const char *name);

#endif
