//! Compares how long the worker's recorder and the floor take to write the segments of a step.

use crate::figures::{Figures, us};
use crate::player::Player;
use crate::rows::{Row, rows};
use crate::times::{ratio, typical};
use crate::{floor, skill};
use bloomery_engine::Conversation;
use bloomery_engine::line::Chain;
use bloomery_journal::files::Disk;
use bloomery_journal::{ClaimingAttempt, Store, claim};
use bloomery_redact::Redactor;
use bloomery_worker::driver::Recorder;
use bloomery_worker::printer::{Format, Printer};
use std::path::Path;
use std::time::{Duration, Instant};

/// The number of model answers in the log.
const ANSWERS: usize = 50;

/// The number of times that the whole log is written.
const ROUNDS: usize = 7;

/// Writes each row of a log with the recorder and with the floor.
pub(crate) async fn measure(figures: &mut Figures, root: &Path) {
    let mut player = Player::new(skill::run(skill::skill()), 400);
    player.play_answers(ANSWERS);
    let rows = rows(&player.lines);
    let (mut recorders, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (recorder, floor) = round(root, &rows).await;
        recorders.push(recorder);
        floors.push(floor);
    }
    let step = |runs: &[Vec<Duration>]| typical(runs).iter().sum::<Duration>() / u32::try_from(ANSWERS).unwrap();
    let (recorder, floor) = (step(&recorders), step(&floors));
    figures.report("durable", "a step's segments, worker", us(recorder), "us");
    figures.report("durable", "a step's segments, floor", us(floor), "us");
    figures.require("durable", "a step's segments, worker to floor", (ratio(recorder, floor), "x"), 1.3);
}

/// Writes all rows once. Returns the times of the recorder and of the floor for each row.
async fn round(root: &Path, rows: &[Row]) -> (Vec<Duration>, Vec<Duration>) {
    let (memory, bare) = (crate::new_dir(root), crate::new_dir(root));
    let store = Store::open(Disk, &memory, crate::RUN_KEY, "uid-1").unwrap();
    let mut conversation = Conversation::new(skill::run(skill::skill()));
    let claimed = claim(
        store,
        Chain::new(crate::SOURCE),
        &mut conversation,
        ClaimingAttempt { number: 1, after_disruption: false },
        Duration::ZERO,
    )
    .await
    .unwrap()
    .begun()
    .unwrap();
    let recorder =
        Recorder::new(claimed, Printer::new(Format::Text, Box::new(std::io::sink())), &[], Redactor::default());
    let (mut recorders, mut floors) = (Vec::new(), Vec::new());
    // The first row is the claim.
    for (at, row) in rows.iter().enumerate().skip(1) {
        let events = row.events.clone();
        let write_recorder = || {
            let began = Instant::now();
            recorder.append_all(events).unwrap();
            recorder.make_durable().unwrap();
            began.elapsed()
        };
        let write_floor = || {
            let began = Instant::now();
            floor::write(&bare, row.first, row.text.as_bytes()).unwrap();
            began.elapsed()
        };
        // The order alternates, because the second write may find the disk busy.
        let (of_recorder, of_floor) = if at % 2 == 0 {
            let first = write_recorder();
            (first, write_floor())
        } else {
            let first = write_floor();
            (write_recorder(), first)
        };
        recorders.push(of_recorder);
        floors.push(of_floor);
    }
    (recorders, floors)
}
