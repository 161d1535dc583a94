/*
 * Forked children of an embedding program: what pf_volume_leave_to_parent promises.
 *
 * An open-file-description lock lives for as long as any process has the description. A child that a program forks for
 * purposes of its own would keep the locks of a dead writer, and with them its work, from being taken over. So every
 * descriptor of a guarded volume is listed, and a hook of the C library closes them in the child, where it also makes
 * the volume refuse every change. Making a descriptor and listing it is one step under the mutex, which the forking
 * thread holds over the fork; so no descriptor is missed, and the child's mutex is in order.
 */
#include "platform/volume_posix.h"

#include "platform/check.h"

#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pf_posix_volume *volumes;

static void before_fork(void)
{
    PF_ALWAYS(pthread_mutex_lock(&mutex) == 0);
}

static void in_parent(void)
{
    PF_ALWAYS(pthread_mutex_unlock(&mutex) == 0);
}

static bool never(void *context)
{
    (void)context;
    return false;
}

/* In the child: closing and plain stores only. */
static void in_child(void)
{
    for (pf_posix_volume *volume = volumes; volume != NULL; volume = volume->next) {
        for (pf_posix_file *file = volume->files; file != NULL; file = file->next) {
            (void)close(file->fd);
            file->fd = -1;
        }
        (void)close(volume->root);
        volume->root = -1;
        volume->base.left = true;
        volume->base.allowed = never;
    }
    PF_ALWAYS(pthread_mutex_unlock(&mutex) == 0);
}

static void install(void)
{
    PF_ALWAYS(pthread_atfork(before_fork, in_parent, in_child) == 0);
}

void pf_posix_fork_hold(const pf_posix_volume *volume)
{
    if (volume->guarded)
        PF_ALWAYS(pthread_mutex_lock(&mutex) == 0);
}

void pf_posix_fork_allow(const pf_posix_volume *volume)
{
    if (volume->guarded)
        PF_ALWAYS(pthread_mutex_unlock(&mutex) == 0);
}

void pf_posix_fork_list(pf_posix_file *file)
{
    pf_posix_volume *volume = pf_posix_of(file->base.volume);
    if (!volume->guarded)
        return;
    file->next = volume->files;
    if (file->next != NULL)
        file->next->previous = file;
    volume->files = file;
}

void pf_posix_fork_unlist_file(pf_posix_file *file)
{
    pf_posix_volume *volume = pf_posix_of(file->base.volume);
    if (!volume->guarded)
        return;
    if (file->previous != NULL)
        file->previous->next = file->next;
    else
        volume->files = file->next;
    if (file->next != NULL)
        file->next->previous = file->previous;
}

void pf_posix_fork_unlist(pf_posix_volume *volume)
{
    if (!volume->guarded)
        return;
    pf_posix_fork_hold(volume);
    if (volume->previous != NULL)
        volume->previous->next = volume->next;
    else
        volumes = volume->next;
    if (volume->next != NULL)
        volume->next->previous = volume->previous;
    pf_posix_fork_allow(volume);
}

void pf_volume_leave_to_parent(pf_volume *base)
{
    pf_posix_volume *volume = pf_posix_of(base);
    if (base->simulated || volume->guarded)
        return;
    PF_ASSERT(base->open_files == 0);
    PF_ALWAYS(pthread_once(&once, install) == 0);
    PF_ALWAYS(pthread_mutex_lock(&mutex) == 0);
    volume->guarded = true;
    volume->next = volumes;
    if (volume->next != NULL)
        volume->next->previous = volume;
    volumes = volume;
    PF_ALWAYS(pthread_mutex_unlock(&mutex) == 0);
}

bool pf_volume_is_left(const pf_volume *volume)
{
    return volume->left;
}
