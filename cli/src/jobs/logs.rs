//! The logs of the pods of a Job.

pub(super) use bloomery_embed::cluster::pods::{attempt_number, has_started, pods};

use crate::cluster::Cluster;
use crate::error::Error;
use crate::{output, text};
use bloomery_embed::cluster::pods::open_log;
use futures::AsyncBufReadExt;
use std::io;

/// Prints the log of a pod. With `follow`, prints until the pod ends. Returns false if the reader of stdout has closed the
/// pipe. A deleted pod is reported, and is not an error.
///
/// # Errors
/// If the log cannot be read.
pub(super) async fn print(cluster: &Cluster, pod: &str, follow: bool) -> Result<bool, Error> {
    let Some(mut log) = open_log(cluster, pod, follow).await? else {
        text::report(&format!("the pod {pod} was deleted, and its log with it"));
        return Ok(true);
    };
    let mut line = Vec::new();
    loop {
        line.clear();
        match log.read_until(b'\n', &mut line).await {
            Ok(0) => return Ok(true),
            Ok(_) => {
                let text = text::sanitized_lines(&String::from_utf8_lossy(&line));
                let has_reader = output::write(&mut io::stdout().lock(), &text)?;
                if !has_reader {
                    return Ok(false);
                }
            }
            Err(error) => return Err(Error::failed(format!("the log of the pod {pod} was interrupted: {error}"))),
        }
    }
}
