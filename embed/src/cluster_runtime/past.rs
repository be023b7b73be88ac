//! Reads the past of a Job for a subscriber.

use super::feed::Feed;
use super::reader_pod::ReaderPod;
use super::window::Next;
use crate::cluster::Cluster;
use crate::error::Error;
use crate::event::JobEvent;
use bloomery_crds::v1alpha1::Job;
use kube::ResourceExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The number of events that wait for the subscriber.
const CAPACITY: usize = 64;

/// The time that the subscriber may take for an event. A longer delay ends the reader pod, so that other subscribers need not wait.
const MAX_DELAY: Duration = Duration::from_secs(10);

/// An event of the log, or the reason why there are no more.
type Past = Result<Arc<JobEvent>, Error>;

/// Sends the events of a log after the event `seq` to a subscriber, and adds all of them to the feed of the Job. The reader pod has the
/// rights of the subscriber. A Job has one reader pod at a time. If another subscriber has read the past meanwhile, the task sends nothing.
pub(super) fn read(feed: Arc<Feed>, cluster: Cluster, job: Job, image: Option<String>, seq: u64) -> Receiver<Past> {
    let (sender, receiver) = channel(CAPACITY);
    // The task goes on without a receiver, so that it deletes its pod.
    tokio::spawn(async move {
        let _turn = feed.reader.lock().await;
        if sender.is_closed() || !matches!(feed.after(seq, 1), Ok(Next::Past)) {
            return;
        }
        let read = match ReaderPod::create(&cluster, &job, image).await {
            Ok(mut pod) => {
                let read = send_all(&feed, &mut pod, &job, seq, &sender).await;
                pod.delete().await;
                read
            }
            Err(error) => Err(error),
        };
        if let Err(error) = read {
            // The subscriber may have left.
            let _ = sender.send(Err(error)).await;
        }
    });
    receiver
}

/// Sends the events of the log after the event `seq`, until the subscriber is too slow or has left.
///
/// # Errors
/// If the log cannot be read, or has no such event.
async fn send_all(feed: &Feed, pod: &mut ReaderPod, job: &Job, seq: u64, sender: &Sender<Past>) -> Result<(), Error> {
    let mut last = 0;
    while let Some(line) = pod.next_line().await? {
        let Some(event) = feed.add(line) else { continue };
        last = event.seq;
        if last > seq && sender.send_timeout(Ok(event), MAX_DELAY).await.is_err() {
            return Ok(());
        }
    }
    if last > seq {
        return Ok(());
    }
    let name = job.name_any();
    Err(Error::failed(format!("the log of the Job {name} in the memory ends with the event {last}")))
}
