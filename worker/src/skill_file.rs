//! The copy of the Skill in its memory, for people and audits: `skill.yaml`.

use bloomery_crds::Digest;
use bloomery_crds::run::Revision;
use bloomery_journal::files::{Files, replace_volatile};
use serde_json::json;
use std::io;
use std::path::Path;

/// The name of the file in a skill directory.
pub const NAME: &str = "skill.yaml";

/// Writes the Skill, unless the file has the same content. A loss of power may lose it, and the next Job writes it again. Only the first
/// epoch of a Job may call this: an older Job that resumes must not restore an older revision.
///
/// # Errors
/// If the file cannot be written. The error need not fail the Job, because Bloomery does not read the file.
pub fn write(files: &impl Files, memory: &Path, revision: &Revision, digest: &Digest, writer: &str) -> io::Result<()> {
    let content = render(revision, digest)?;
    match files.read(&memory.join(NAME)) {
        Ok(existing) if existing == content.as_bytes() => Ok(()),
        _ => replace_volatile(files, memory, NAME, writer, content.as_bytes()),
    }
}

fn render(revision: &Revision, digest: &Digest) -> io::Result<String> {
    let skill = json!({
        "apiVersion": "bloomery.dev/v1alpha1",
        "kind": "Skill",
        "metadata": { "name": revision.skill },
        "spec": revision.spec,
    });
    let yaml = serde_yaml::to_string(&skill).map_err(io::Error::other)?;
    Ok(format!("# The Skill of the Job that started last, revision {digest}.\n# Changes here have no effect.\n{yaml}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_journal::files::Disk;
    use bloomery_journal::fixture;
    use std::fs;

    #[test]
    fn the_file_contains_the_skill_and_its_revision_and_is_written_only_when_it_differs() {
        let memory = tempfile::tempdir().unwrap();
        let revision = Revision::new("cs-tier-1", fixture::skill(), None);
        let (one, two) = (Digest::of_bytes(b"1"), Digest::of_bytes(b"2"));
        write(&Disk, memory.path(), &revision, &one, "uid-1").unwrap();
        let file = memory.path().join(NAME);
        let text = fs::read_to_string(&file).unwrap();
        let read: serde_json::Value = serde_yaml::from_str(&text).unwrap();
        assert!(text.contains(one.as_str()), "{text}");
        assert_eq!(read["spec"], serde_json::to_value(fixture::skill()).unwrap());

        let written = fs::metadata(&file).unwrap().modified().unwrap();
        write(&Disk, memory.path(), &revision, &one, "uid-2").unwrap();
        assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), written);
        write(&Disk, memory.path(), &revision, &two, "uid-3").unwrap();
        assert!(fs::read_to_string(&file).unwrap().contains(two.as_str()));
        assert_eq!(Disk.list(memory.path()).unwrap(), [NAME]);
    }
}
