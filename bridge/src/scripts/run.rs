//! Runs a script: without a shell, in a process group of its own, with limits on its time and output.

use super::arguments::Call;
use crate::process::Process;
use serde_json::{Value, json};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::task::JoinHandle;

/// The PATH of scripts, if the bridge has none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The locale of scripts, if the bridge has none.
const DEFAULT_LANG: &str = "C.UTF-8";

/// The time to read the remaining output after the end of a script. A process that the script left behind may keep it open.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The deepest nesting of output that is passed on as JSON. Clients refuse messages that are nested too deep.
const MAX_DEPTH: usize = 32;

/// How scripts are run.
#[derive(Debug)]
pub(super) struct Runner {
    /// The home and working directory.
    pub(super) work_dir: PathBuf,
    /// The time that a script may take.
    pub(super) time_limit: Duration,
    /// The bytes of each output that are kept.
    pub(super) max_output: usize,
}

impl Runner {
    /// Runs a script to its end, and returns the result of the call. Dropping the future kills the script.
    pub(super) async fn run(&self, file: &Path, call: Call) -> Value {
        let command = self.command(file, &call.args);
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let program = command.as_std().get_program().to_string_lossy().into_owned();
        let (mut process, mut stdin, stdout) = match Process::spawn(command) {
            Ok(started) => started,
            Err(error) => return failure(&format!("the script {name} cannot be started with {program}: {error}")),
        };
        let stderr = process.take_stderr();
        let stdout = Capture::start(stdout, self.max_output);
        let stderr = stderr.map(|stderr| Capture::start(stderr, self.max_output));
        let input = tokio::spawn(async move {
            // A script need not read its input. The end of the task closes it.
            let _ = stdin.write_all(call.stdin.unwrap_or_default().as_bytes()).await;
        });
        let ended = tokio::time::timeout(self.time_limit, process.wait()).await;
        input.abort();
        // Kills the remaining processes of the group.
        drop(process);
        let stdout = stdout.text().await;
        let stderr = match stderr {
            Some(stderr) => stderr.text().await,
            None => String::new(),
        };
        self.result(&name, ended.ok(), stdout, stderr)
    }

    /// Returns the command of a script. Its environment has nothing of the bridge's but PATH and LANG.
    fn command(&self, file: &Path, args: &[String]) -> Command {
        let inherited = |name: &str, default: &str| std::env::var_os(name).unwrap_or_else(|| default.into());
        let interpreter: &[&str] = match file.extension().and_then(|extension| extension.to_str()) {
            Some("sh") => &["sh"],
            Some("py") => &["python3"],
            Some("ps1") => &["pwsh", "-NoProfile", "-NonInteractive", "-File"],
            _ => &[],
        };
        let mut command = match interpreter.split_first() {
            Some((program, options)) => {
                let mut command = Command::new(program);
                command.args(options).arg(file);
                command
            }
            None => Command::new(file),
        };
        command.args(args).current_dir(&self.work_dir).stderr(Stdio::piped()).env_clear();
        command.env("PATH", inherited("PATH", DEFAULT_PATH)).env("LANG", inherited("LANG", DEFAULT_LANG));
        command.env("HOME", &self.work_dir);
        command
    }

    /// Returns the result of a call. `ended` is `None` if the script took too long.
    fn result(&self, name: &str, ended: Option<io::Result<ExitStatus>>, stdout: String, mut stderr: String) -> Value {
        let exit_code = match ended {
            Some(Ok(status)) => status.code().or_else(|| status.signal().map(|signal| 128 + signal)),
            Some(Err(error)) => return failure(&format!("the end of the script {name} is not known: {error}")),
            None => {
                let seconds = self.time_limit.as_secs();
                let note = format!("[the script {name} was killed after its time limit of {seconds} s]");
                stderr = [stderr.as_str(), note.as_str()].join(if stderr.is_empty() { "" } else { "\n" });
                None
            }
        };
        let stdout = as_json(&stdout).unwrap_or_else(|| Value::from(stdout));
        let content = json!({"exitCode": exit_code, "stdout": stdout, "stderr": stderr});
        json!({
            "content": [{"type": "text", "text": content.to_string()}],
            "structuredContent": content,
            "isError": exit_code != Some(0),
        })
    }
}

/// Returns the result of a call whose script did not run.
fn failure(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": true})
}

/// Returns an output as JSON; `None` if it is no JSON, or is nested too deep.
fn as_json(text: &str) -> Option<Value> {
    serde_json::from_str(text.trim()).ok().filter(|value| is_within(value, MAX_DEPTH))
}

fn is_within(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(items) => depth > 0 && items.iter().all(|item| is_within(item, depth - 1)),
        Value::Object(fields) => depth > 0 && fields.values().all(|field| is_within(field, depth - 1)),
        _ => true,
    }
}

/// The beginning of an output, which a task reads to its end.
#[derive(Debug)]
struct Capture {
    output: Arc<Mutex<Output>>,
    reader: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Output {
    kept: Vec<u8>,
    cut: usize,
}

impl Capture {
    fn start(mut source: impl AsyncRead + Unpin + Send + 'static, max: usize) -> Self {
        let output = Arc::new(Mutex::new(Output::default()));
        let shared = Arc::clone(&output);
        let reader = tokio::spawn(async move {
            let mut buffer = vec![0; 16 * 1024];
            while let Ok(read @ 1..) = source.read(&mut buffer).await {
                let mut output = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let room = max.saturating_sub(output.kept.len()).min(read);
                output.kept.extend_from_slice(buffer.get(..room).unwrap_or_default());
                output.cut += read - room;
            }
        });
        Self { output, reader }
    }

    /// Returns the output after the end of its process, with a note if it was cut.
    async fn text(mut self) -> String {
        if tokio::time::timeout(DRAIN_TIMEOUT, &mut self.reader).await.is_err() {
            self.reader.abort();
        }
        let Output { kept, cut } = std::mem::take(&mut *self.output.lock().unwrap_or_else(PoisonError::into_inner));
        let text = String::from_utf8_lossy(&kept).into_owned();
        if cut == 0 { text } else { format!("{text}\n[cut: {cut} more bytes are left out]") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_that_is_nested_too_deep_stays_a_text() {
        let nested = |levels: usize| format!("{}1{}\n", "[".repeat(levels), "]".repeat(levels));
        assert!(as_json(&nested(MAX_DEPTH)).is_some());
        assert_eq!(as_json(&nested(MAX_DEPTH + 1)), None);
        assert_eq!(as_json(&nested(100_000)), None);
        assert_eq!(as_json("1 2"), None);
    }
}
