//! A process is killed while it holds a lock; the next one repairs what it left.

use std::process::Command;

use outlive::Node;
use outlive::lock::{LockError, RobustMutex};

/// Left and right; their sum is always 100.
type Account = [i64; 2];

fn open(name: &str) -> outlive::Result<RobustMutex<Account>> {
    Node::open(name)?.mutex_with("/account", &[60, 40])
}

fn main() -> outlive::Result<()> {
    if std::env::args().nth(1).is_some() {
        let mutex = open("clumsy")?;
        let mut account = mutex.lock()?;
        account[0] -= 10; // half of a transfer
        std::process::abort();
    }
    let program = std::env::current_exe().expect("this program");
    let _ = Command::new(program).arg("die").status();

    let mutex = open("careful")?;
    let account = match mutex.lock() {
        Ok(account) => account,
        Err(LockError::OwnerDied(mut left)) => {
            println!("its owner died: left {}, right {}", left[0], left[1]);
            left[1] = 100 - left[0]; // repair
            left.mark_consistent()
        }
        Err(e) => return Err(e.into()),
    };
    println!("robust lock: left {}, right {}", account[0], account[1]);
    Ok(())
}
