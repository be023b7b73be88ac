//! Which bindings are on a disk of this machine. Reads of a network file system wait as long as its server does not answer.

use crate::root::Root;
use rustix::fs::{FsWord, fstatfs};
use std::sync::OnceLock;

/// The types of file systems on disks of this machine, as `statfs(2)` names them: ext4, XFS, Btrfs, files in memory, and the layers of an
/// image.
const LOCAL_TYPES: [FsWord; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0x794C_7630];

/// Whether a binding is on a disk of this machine. Not known before a call has opened the binding: opening a network file system waits too.
#[derive(Debug, Default)]
pub(crate) struct LocalDisk(OnceLock<bool>);

impl LocalDisk {
    /// Notes the type of the file system of an open binding.
    pub(crate) fn note(&self, root: &Root) {
        self.0.get_or_init(|| fstatfs(&root.dir).is_ok_and(|found| LOCAL_TYPES.contains(&found.f_type)));
    }

    /// Returns whether an earlier call has opened the binding on a disk of this machine.
    pub(crate) fn is_known(&self) -> bool {
        self.0.get() == Some(&true)
    }
}
