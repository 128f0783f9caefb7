//! Child processes that do not outlive their test.

use std::ops::{Deref, DerefMut};
use std::process::{Child, Command};

/// A child process that is killed when it is dropped, also by a panic.
#[derive(Debug)]
pub struct ChildProcess(Child);

impl From<Child> for ChildProcess {
    fn from(child: Child) -> Self {
        Self(child)
    }
}

impl Deref for ChildProcess {
    type Target = Child;
    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for ChildProcess {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // Both fail only for a child that has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a child a signal, `TERM` for example.
///
/// # Panics
/// If it has ended and was waited for.
pub fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "kill -{name} failed");
}
