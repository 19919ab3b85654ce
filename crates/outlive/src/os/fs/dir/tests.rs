use std::fs;

use super::*;
use crate::os::fixture::TempDir;

fn kind_of<T>(result: Result<T>) -> ErrorKind {
    result.err().expect("an error").kind()
}

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn a_directory_is_made_once_for_its_owner_only() {
    let dir = TempDir::new("dir");
    let path = dir.join("default");
    for _ in 0..2 {
        make_dir(&path, &Access::private()).unwrap();
        assert_eq!(mode_of(&path), 0o700);
    }
}

#[test]
fn a_directory_that_a_death_left_too_narrow_is_repaired_by_its_owner() {
    let dir = TempDir::new("dir");
    let path = dir.join("default");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o500)).unwrap();
    let access = Access::group(sched::gid());
    make_dir(&path, &access).unwrap();
    assert_eq!(mode_of(&path), 0o2770);
}

#[test]
fn strangers_directories_are_refused() {
    let dir = TempDir::new("dir");
    let other = Access { owner: sched::uid() + 1, ..Access::private() };
    let error = make_dir(dir.path(), &other).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotOwned);
    assert!(error.remedy().contains("OUTLIVE_DIR"));
    let path = dir.join("open");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
    assert_eq!(kind_of(make_dir(&path, &Access::private())), ErrorKind::NotOwned);
    assert_eq!(mode_of(&path), 0o777);
}

#[test]
fn only_real_directories_are_entered() {
    let dir = TempDir::new("dir");
    fs::write(dir.join("file"), "").unwrap();
    std::os::unix::fs::symlink(dir.path(), dir.join("link")).unwrap();
    for name in ["file", "link"] {
        let made = make_dir(&dir.join(name), &Access::private());
        assert_eq!(kind_of(made), ErrorKind::Corrupt, "{name}");
    }
    assert_eq!(kind_of(make_dir(&dir.join("a/b"), &Access::private())), ErrorKind::NotFound);
}

#[test]
fn members_share_a_directory_and_a_remover_excludes_them() {
    let dir = TempDir::new("dir");
    let path = dir.join("topic");
    make_dir(&path, &Access::private()).unwrap();
    let one = now_dir_lock_shared(&path, Deadline::AT_ONCE).unwrap();
    let two = now_dir_lock_shared(&path, Deadline::AT_ONCE).unwrap();
    let remover = open_dir(&path).unwrap();
    assert!(!remover.try_lock_exclusive().unwrap());
    one.unlock();
    drop(two);
    crate::os::fixture::until(|| remover.try_lock_exclusive().unwrap());
    assert_eq!(kind_of(now_dir_lock_shared(&path, Deadline::in_ns(0))), ErrorKind::Timeout);
    remover.unlock();
    assert!(now_dir_lock_shared(&path, Deadline::AT_ONCE).is_ok());
}

#[test]
fn a_directory_made_anew_is_not_the_old_one() {
    let dir = TempDir::new("dir");
    let path = dir.join("topic");
    make_dir(&path, &Access::private()).unwrap();
    let old = open_dir(&path).unwrap();
    assert!(old.still_at(&path).unwrap());
    assert!(remove_dir(&path).unwrap());
    assert!(!old.still_at(&path).unwrap());
    assert_eq!(kind_of(now_dir_lock_shared(&path, Deadline::NEVER)), ErrorKind::NotFound);
    make_dir(&path, &Access::private()).unwrap();
    assert!(!old.still_at(&path).unwrap());
}

#[test]
fn entries_are_the_names_that_can_be_ours() {
    use std::os::unix::ffi::OsStrExt;
    let dir = TempDir::new("dir");
    fs::write(dir.join("pub.1.2"), "").unwrap();
    fs::write(dir.path().join(std::ffi::OsStr::from_bytes(b"\xff")), "").unwrap();
    assert_eq!(open_dir(dir.path()).unwrap().entries().unwrap(), ["pub.1.2"]);
}

#[test]
fn a_full_or_absent_directory_is_not_removed() {
    let dir = TempDir::new("dir");
    fs::write(dir.join("f"), "").unwrap();
    assert!(!remove_dir(dir.path()).unwrap());
    assert!(!remove_dir(&dir.join("none")).unwrap());
}
