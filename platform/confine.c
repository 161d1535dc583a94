/*
 * Landlock and a seccomp filter (see platform/confine.h). no_new_privs is set by pf_fork, and again here.
 */
#include "platform/confine.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ABI_LEAST 2 /* with REFER: without it no file is renamed into another folder */

#define READING (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define OWNING                                                                                                         \
    (READING | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |        \
     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REFER)
#define HANDLED                                                                                                        \
    (OWNING | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_SOCK |               \
     LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM)

/* A path that is not there needs no rule. */
static int allow(int ruleset, const char *path, uint64_t access)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = access};
    rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
    if (rule.parent_fd < 0)
        return 0;
    int result = (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    (void)close(rule.parent_fd);
    return result;
}

static sluice_status confine_files(const char *folder, bool *ret_done, sluice_error *err)
{
    const struct landlock_ruleset_attr attributes = {.handled_access_fs = HANDLED};
    *ret_done = false;
    if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < ABI_LEAST)
        return SLUICE_OK;
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
    if (ruleset < 0)
        return pf_fail_errno(err, errno, "confining a process");
    bool good = allow(ruleset, folder, OWNING) == 0 && allow(ruleset, "/", LANDLOCK_ACCESS_FS_READ_DIR) == 0 &&
                allow(ruleset, "/proc", READING) == 0 && allow(ruleset, "/sys", READING) == 0 &&
                allow(ruleset, "/dev/null", LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE) == 0 &&
                syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
    int error_number = errno;
    (void)close(ruleset);
    *ret_done = good;
    return good ? SLUICE_OK : pf_fail_errno(err, error_number, "confining a process");
}

#if defined(__x86_64__)
#define THIS_MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_MACHINE AUDIT_ARCH_AARCH64
#endif

/* Calls that no work of ours makes are refused; calls of another machine's numbering, too. */
static bool confine_calls(void)
{
#ifdef THIS_MACHINE
#define REFUSE_IF(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, REFUSED)
#define REFUSED           (SECCOMP_RET_ERRNO | EPERM)
    static struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_MACHINE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, REFUSED),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, REFUSED),
        REFUSE_IF(SYS_execve),
        REFUSE_IF(SYS_execveat),
        REFUSE_IF(SYS_ptrace),
        REFUSE_IF(SYS_process_vm_readv),
        REFUSE_IF(SYS_process_vm_writev),
        REFUSE_IF(SYS_socket),
        REFUSE_IF(SYS_connect),
        REFUSE_IF(SYS_bind),
        REFUSE_IF(SYS_mount),
        REFUSE_IF(SYS_umount2),
        REFUSE_IF(SYS_pivot_root),
        REFUSE_IF(SYS_chroot),
        REFUSE_IF(SYS_unshare),
        REFUSE_IF(SYS_setns),
        REFUSE_IF(SYS_bpf),
        REFUSE_IF(SYS_perf_event_open),
        REFUSE_IF(SYS_kexec_load),
        REFUSE_IF(SYS_init_module),
        REFUSE_IF(SYS_finit_module),
        REFUSE_IF(SYS_keyctl),
        REFUSE_IF(SYS_add_key),
        REFUSE_IF(SYS_request_key),
        REFUSE_IF(SYS_open_by_handle_at),
        REFUSE_IF(SYS_pidfd_getfd),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
#else
    return false;
#endif
}

sluice_status pf_confine(const char *folder, pf_confinement *ret_confinement, sluice_error *err)
{
    *ret_confinement = (pf_confinement){0};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return pf_fail_errno(err, errno, "confining a process");
    PF_TRY(confine_files(folder, &ret_confinement->files, err));
    ret_confinement->calls = confine_calls();
    return SLUICE_OK;
}
