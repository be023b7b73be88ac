//! Measures how long an attempt takes to resume: it reads the segments, checks them, and applies their events.

use crate::figures::{Figures, ms};
use crate::player::Player;
use crate::rows::rows;
use crate::skill;
use crate::times::median;
use bloomery_engine::Conversation;
use bloomery_engine::line::Chain;
use bloomery_journal::files::Disk;
use bloomery_journal::{JOBS, Store, segment};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// The number of times that each log is read.
const TIMES: usize = 21;

/// Reads logs of 1,000 and 10,000 events.
pub(crate) fn measure(figures: &mut Figures, root: &Path) {
    let mut player = Player::new(skill::run(skill::skill()), 400);
    player.play_answers(2_000);
    let short = resume(root, &player.lines, 1_000);
    figures.require("resume", "1,000 events", (ms(short), "ms"), 20.0);
    let long = resume(root, &player.lines, 10_000);
    figures.report("resume", "10,000 events", ms(long), "ms");
}

/// Reads a log of whole segments, with at least this number of events. Returns the median time.
fn resume(root: &Path, lines: &[String], events: usize) -> Duration {
    let memory = crate::new_dir(root);
    let dir = memory.join(JOBS).join(crate::RUN_KEY);
    fs::create_dir_all(&dir).unwrap();
    let mut written = 0;
    for row in rows(lines).iter().take_while(|row| row.first <= events as u64) {
        fs::write(dir.join(segment::name(row.first)), &row.text).unwrap();
        written += row.events.len();
    }
    assert!(written >= events, "a log of {written} events");
    let store = Store::open(Disk, &memory, crate::RUN_KEY, "uid-2").unwrap();
    median((0..TIMES).map(|_| {
        let mut conversation = Conversation::new(skill::run(skill::skill()));
        let mut chain = Chain::new(crate::SOURCE);
        let began = Instant::now();
        store.read(&mut chain, |entry| conversation.apply(entry)).unwrap();
        let took = began.elapsed();
        assert_eq!(conversation.events(), written as u64);
        took
    }))
}
