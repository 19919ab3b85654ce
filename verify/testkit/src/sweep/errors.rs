//! Which errors Linux can give which system call.

use libc::{
    EACCES, EAGAIN, ECONNREFUSED, EDQUOT, EINTR, EINVAL, EIO, EMFILE, ENFILE, ENOBUFS, ENOLCK,
    ENOMEM, ENOSPC, ENOSYS, EPERM,
};

const FUTEX_COMMAND: u64 = 0x7f;
const FUTEX_WAKE: u64 = 1;
const FUTEX_WAIT_BITSET: u64 = 9;

/// Errors of the call `number`, whose first arguments are `args`. Empty: it cannot fail, or only
/// by a mistake of the caller's.
pub(crate) fn of(number: i64, args: [u64; 4]) -> &'static [i32] {
    let creates = args[2] as i32 & libc::O_CREAT != 0 || args[2] as i32 & libc::O_TMPFILE != 0;
    match of_today(number) {
        libc::SYS_openat if creates => {
            &[ENOMEM, EMFILE, ENFILE, ENOSPC, EDQUOT, EACCES, EPERM, EIO, EINTR]
        }
        libc::SYS_openat => &[ENOMEM, EMFILE, ENFILE, EACCES, EPERM, EIO, EINTR],
        libc::SYS_mkdirat => &[ENOSPC, EDQUOT, EACCES, EPERM, ENOMEM, EIO],
        libc::SYS_linkat | libc::SYS_renameat2 => &[ENOSPC, EDQUOT, EACCES, EPERM, ENOMEM, EIO],
        libc::SYS_unlinkat => &[EACCES, EPERM, ENOMEM, EIO],
        libc::SYS_ftruncate | libc::SYS_fallocate => &[ENOSPC, EDQUOT, EINTR, EIO, EPERM, ENOMEM],
        libc::SYS_fchmod | libc::SYS_fchmodat | libc::SYS_fchown => &[EPERM, EIO],
        libc::SYS_utimensat => &[EACCES, EPERM, ENOMEM, EIO],
        libc::SYS_fstat | libc::SYS_newfstatat | libc::SYS_statx => &[ENOMEM, EACCES, EIO],
        libc::SYS_readlinkat => &[EACCES, EIO, ENOMEM],
        libc::SYS_getdents64 => &[EIO, ENOMEM],
        libc::SYS_read | libc::SYS_pread64 => &[EIO, EINTR],
        libc::SYS_write | libc::SYS_pwrite64 => &[EIO, EINTR, ENOSPC, EDQUOT],
        libc::SYS_mmap | libc::SYS_mremap => &[ENOMEM, EPERM, EAGAIN],
        libc::SYS_mprotect | libc::SYS_munmap => &[ENOMEM],
        libc::SYS_madvise => &[EINVAL, ENOMEM, EAGAIN, ENOSYS],
        libc::SYS_fcntl => match args[1] as i32 {
            libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => &[EMFILE],
            libc::F_OFD_SETLK | libc::F_OFD_SETLKW | libc::F_OFD_GETLK => {
                &[ENOLCK, ENOMEM, EINTR, EACCES]
            }
            _ => &[EINTR],
        },
        libc::SYS_flock => &[EINTR, ENOLCK],
        libc::SYS_dup3 | libc::SYS_dup => &[EMFILE],
        libc::SYS_eventfd2 | libc::SYS_timerfd_create | libc::SYS_epoll_create1 => {
            &[EMFILE, ENFILE, ENOMEM]
        }
        libc::SYS_inotify_init1 => &[EMFILE, ENFILE, ENOMEM],
        libc::SYS_inotify_add_watch => &[ENOSPC, ENOMEM, EACCES],
        libc::SYS_epoll_ctl => &[ENOMEM, ENOSPC],
        libc::SYS_socket => &[EMFILE, ENFILE, ENOBUFS, ENOMEM, EACCES],
        libc::SYS_bind => &[ENOMEM, ENOSPC, EACCES],
        libc::SYS_connect => &[ECONNREFUSED, EAGAIN, EACCES],
        libc::SYS_sendto => &[EAGAIN, ENOBUFS, ENOMEM, EINTR, ECONNREFUSED],
        libc::SYS_recvfrom => &[EINTR, ENOMEM],
        libc::SYS_ppoll | libc::SYS_epoll_pwait => &[EINTR, ENOMEM],
        libc::SYS_clock_nanosleep | libc::SYS_nanosleep => &[EINTR],
        libc::SYS_futex => match args[1] & FUTEX_COMMAND {
            0 | FUTEX_WAIT_BITSET => &[EINTR, EAGAIN, ENOMEM],
            // A wake fails only by a mistake of the caller's.
            FUTEX_WAKE => &[],
            _ => &[ENOSYS, EINTR, EAGAIN, ENOMEM],
        },
        libc::SYS_futex_waitv => &[ENOSYS, EPERM, EINTR, EAGAIN, ENOMEM],
        libc::SYS_clone | libc::SYS_clone3 => &[EAGAIN, ENOMEM, EPERM],
        libc::SYS_membarrier => &[ENOSYS, EPERM, EINVAL],
        libc::SYS_memfd_create => &[ENOMEM, EMFILE, ENFILE],
        libc::SYS_sched_setattr | libc::SYS_sched_setscheduler | libc::SYS_sched_setaffinity => {
            &[EPERM]
        }
        libc::SYS_mlock | libc::SYS_mlockall => &[ENOMEM, EPERM],
        _ => &[],
    }
}

/// The call that an older one is a case of. Only x86_64 has the older ones.
fn of_today(number: i64) -> i64 {
    #[cfg(target_arch = "x86_64")]
    let number = match number {
        libc::SYS_mkdir => libc::SYS_mkdirat,
        libc::SYS_rename => libc::SYS_renameat2,
        libc::SYS_unlink | libc::SYS_rmdir => libc::SYS_unlinkat,
        libc::SYS_chmod => libc::SYS_fchmodat,
        libc::SYS_lstat => libc::SYS_newfstatat,
        libc::SYS_readlink => libc::SYS_readlinkat,
        libc::SYS_poll => libc::SYS_ppoll,
        libc::SYS_epoll_wait => libc::SYS_epoll_pwait,
        _ => number,
    };
    number
}

/// Whether an error may go on for ever: a kernel does not interrupt each call of a loop.
pub(crate) fn may_last(error: i32) -> bool {
    !matches!(error, EINTR | EAGAIN)
}
