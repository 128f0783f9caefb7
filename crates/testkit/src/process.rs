//! Child processes that do not outlive their test.

use std::ops::{Deref, DerefMut};
use std::process::{Child, Command};

/// A child process, killed when the test that started it ends, also by a panic.
#[derive(Debug)]
pub struct Process(Child);

impl From<Child> for Process {
    fn from(child: Child) -> Self {
        Self(child)
    }
}

impl Deref for Process {
    type Target = Child;
    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, which is what was wanted.
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
