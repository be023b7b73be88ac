//! The scripts in a directory, as tools.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The JSON Schema of the arguments of each script. The engine, which checks rules without this server, contains the same file.
const INPUT_SCHEMA: &str = include_str!("../../../crds/src/scripts/input_schema.json");

/// The beginning of the name of each tool.
const PREFIX: &str = "script_";

/// The part of a file that is searched for its description, in bytes.
const MAX_HEAD_BYTES: u64 = 4096;

/// The longest description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 1024;

/// The scripts, by the names of their tools.
#[derive(Debug)]
pub(super) struct Directory(BTreeMap<String, PathBuf>);

impl Directory {
    /// Finds the scripts in a directory. A hidden file is none: a volume of Kubernetes has such files.
    pub(super) fn read(dir: &Path) -> io::Result<Self> {
        let mut tools: BTreeMap<String, PathBuf> = BTreeMap::new();
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name.starts_with('.') || !entry.path().is_file() {
                continue;
            }
            let chosen = tools.entry(tool(&name)).or_insert_with(|| entry.path());
            if place(&entry.path()) < place(chosen) {
                *chosen = entry.path();
            }
        }
        Ok(Self(tools))
    }

    /// Returns the file of a tool.
    pub(super) fn file(&self, tool: &str) -> Option<&Path> {
        self.0.get(tool).map(PathBuf::as_path)
    }

    /// Returns the definitions of the tools.
    pub(super) fn tools(&self) -> Vec<Value> {
        let schema: Value = serde_json::from_str(INPUT_SCHEMA).unwrap_or_default();
        let tool = |(name, file): (&String, &PathBuf)| {
            let description = description(file);
            json!({"name": name, "description": description, "inputSchema": schema})
        };
        self.0.iter().map(tool).collect()
    }
}

/// Returns the name of the tool that a file is. The crate `crds` computes the same name for rules.
fn tool(file: &str) -> String {
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '_' };
    PREFIX.chars().chain(stem.chars().map(plain)).collect()
}

/// Returns the place of a file among those of the same tool, which are for different systems. This one is Linux.
fn place(file: &Path) -> (u8, &Path) {
    let rank = match file.extension().and_then(|extension| extension.to_str()) {
        Some("sh") => 0,
        Some("py") => 1,
        Some("ps1") => 3,
        _ => 2,
    };
    (rank, file)
}

/// Returns the comment at the beginning of a script; an empty text if there is none.
fn description(file: &Path) -> String {
    let Ok(file) = std::fs::File::open(file) else { return String::new() };
    let lines = BufReader::new(file.take(MAX_HEAD_BYTES)).lines().map_while(Result::ok);
    let lines = lines.skip_while(|line| line.starts_with("#!") || line.trim().is_empty());
    let comment = lines.map_while(|line| line.strip_prefix('#').map(|text| text.trim().to_owned()));
    comment.collect::<Vec<_>>().join("\n").trim().chars().take(MAX_DESCRIPTION_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn directory(files: &[(&str, &str)]) -> (tempfile::TempDir, Directory) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let read = Directory::read(dir.path()).unwrap();
        (dir, read)
    }

    #[test]
    fn the_tools_are_those_that_rules_name() {
        let files = [
            "check.sh",
            "check.py",
            "check.ps1",
            "a.b.sh",
            "c-d",
            "only.ps1",
            "x.rb",
            "x.ps1",
            "two.py",
            "two",
            "Ü.sh",
            "UP.SH",
        ];
        let (dir, _) = directory(&files.map(|name| (name, "")));
        std::fs::write(dir.path().join("..data"), "").unwrap();
        let read = Directory::read(dir.path()).unwrap();
        let expected = bloomery_crds::scripts::tools(files);
        let found: Vec<(&str, &Path)> = read.0.iter().map(|(tool, file)| (tool.as_str(), file.as_path())).collect();
        let expected: Vec<(&str, PathBuf)> =
            expected.iter().map(|(tool, file)| (tool.as_str(), dir.path().join(file))).collect();
        assert_eq!(found, expected.iter().map(|(tool, file)| (*tool, file.as_path())).collect::<Vec<_>>());
        assert_eq!(INPUT_SCHEMA, bloomery_crds::scripts::INPUT_SCHEMA);
    }

    #[rstest]
    #[case::none("echo 1\n", "")]
    #[case::comment(
        "#!/bin/sh\n\n# Checks an order.\n#\n# Arguments: its number\nset -e\n# later\n",
        "Checks an order.\n\nArguments: its number"
    )]
    #[case::no_interpreter("# Checks an order.", "Checks an order.")]
    #[case::not_text("#!/bin/sh\n\u{0}", "")]
    fn the_comment_at_the_beginning_is_the_description(#[case] text: &str, #[case] expected: &str) {
        let (_dir, read) = directory(&[("check.sh", text)]);
        assert_eq!(read.tools()[0]["description"], expected);
    }
}
