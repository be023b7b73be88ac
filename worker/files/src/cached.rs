//! Reads of small files that the kernel has in memory. They take no longer than a system call, whatever the volume does.
//!
//! The kernel itself says whether it must wait: it resolves a path only from its cache (`RESOLVE_CACHED`), and reads only from memory
//! (`RWF_NOWAIT`). Only the open of a network file system may wait in any case, so only files of some types of file systems are opened.

use crate::call::{CALL_TIMEOUT, Deadline};
use crate::root::{self, Opened};
use crate::secrets::Secrets;
use crate::{Binding, read};
use cap_std::fs::File;
use rustix::fs::{CWD, FsWord, Mode, OFlags, ResolveFlags, fstatfs, openat2};
use rustix::io::{ReadWriteFlags, preadv2};
use std::fs;
use std::io::IoSliceMut;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;

/// The largest file that is read, in bytes.
const MAX_BYTES: usize = 64 * 1024;

// The types of file systems whose open does not wait for a server and that have `RWF_NOWAIT`, as `statfs(2)` names them.
const EXT4: FsWord = 0xEF53;
const XFS: FsWord = 0x5846_5342;
const BTRFS: FsWord = 0x9123_683E;

/// Whether the files of a binding can be opened without waiting. Not known before a call has opened the binding, because asking a network
/// file system for its type waits too.
#[derive(Debug, Default)]
pub(crate) struct OpensAtOnce(OnceLock<bool>);

impl OpensAtOnce {
    /// Notes the type of the file system of an open binding.
    pub(crate) fn note(&self, dir: impl AsFd) {
        let is_listed = |kind: FsWord| [EXT4, XFS, BTRFS].contains(&kind);
        self.0.get_or_init(|| fstatfs(dir).is_ok_and(|found| is_listed(found.f_type)));
    }

    /// Returns whether an earlier call has noted that files open without waiting.
    pub(crate) fn is_known(&self) -> bool {
        self.0.get() == Some(&true)
    }
}

/// Answers a call of `read_file` from the memory of the kernel. Returns `None` if the kernel would have to wait, if the file is large or of
/// another file system than the binding, and if the call fails.
pub(crate) fn read(binding: &Binding, call: &read::Arguments, secrets: &Secrets) -> Option<String> {
    let path = root::path_below(&binding.path.to_string_lossy(), call.path()).ok()?;
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = openat2(CWD, &binding.path, directory, Mode::empty(), ResolveFlags::CACHED).ok()?;
    let below = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV | ResolveFlags::CACHED;
    let open = |flags| openat2(&dir, path.as_path(), flags | OFlags::CLOEXEC, Mode::empty(), below).ok();
    // The open of a device or of a named pipe may have effects.
    small_file(open(OFlags::PATH)?)?;
    let opened = small_file(open(OFlags::RDONLY | OFlags::NONBLOCK)?)?;
    is_in_memory(&opened)?;
    read::read_opened(&path, &opened, (call, &Deadline::start(CALL_TIMEOUT)), secrets).ok()
}

/// Returns an open file with its metadata, if it is a small regular file. A file of the kernel (procfs) has the size 0.
fn small_file(file: OwnedFd) -> Option<Opened> {
    let file = File::from_std(fs::File::from(file));
    let metadata = file.metadata().ok()?;
    let is_small = (1..=MAX_BYTES as u64).contains(&metadata.len());
    (metadata.is_file() && is_small).then_some(Opened { file, metadata })
}

/// Returns `Some` if the kernel has the whole file in memory.
fn is_in_memory(opened: &Opened) -> Option<()> {
    let size = usize::try_from(opened.metadata.len()).ok()?;
    let mut content = vec![0; size];
    let read = preadv2(&opened.file, &mut [IoSliceMut::new(&mut content)], 0, ReadWriteFlags::NOWAIT).ok()?;
    (read == size).then_some(())
}
