use super::*;
use crate::job::fixtures::at;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn job(namespace: &str, skill: &str, number: usize) -> QueuedJob {
    QueuedJob {
        namespace: namespace.into(),
        skill: skill.into(),
        name: format!("j{number}"),
        uid: format!("{namespace}/{skill}/{number:04}"),
        has_started: false,
        is_child: false,
        created: Some(at(i64::try_from(number).unwrap())),
    }
}

fn maxima(cluster: u32) -> Maxima {
    Maxima { cluster: Some(cluster), ..Maxima::default() }
}

fn names(jobs: &[QueuedJob]) -> Vec<&str> {
    jobs.iter().map(|job| job.uid.as_str()).collect()
}

/// Asks for places for `count` Jobs of a Skill.
fn request_all(scheduler: &mut Scheduler, namespace: &str, skill: &str, count: usize, maxima: &Maxima) {
    for number in 0..count {
        scheduler.request(&job(namespace, skill, number), maxima, at(0));
    }
}

/// Ends the Job that has a place for longest, again and again, and returns the Jobs that start, in their order.
fn starts(scheduler: &mut Scheduler, running: &[&str], count: usize) -> Vec<String> {
    let mut running: std::collections::VecDeque<String> = running.iter().map(|uid| (*uid).to_owned()).collect();
    let mut started = Vec::new();
    while started.len() < count {
        let ended = running.pop_front().expect("no Job has a place, although some wait");
        for job in scheduler.finish(&ended) {
            running.push_back(job.uid.clone());
            started.push(job.uid);
        }
    }
    started
}

#[test]
fn without_maxima_every_job_starts() {
    let mut scheduler = Scheduler::default();
    for number in 0..100 {
        let answer = scheduler.request(&job("acme", "refunds", number), &Maxima::default(), at(0));
        assert_eq!(answer, (Answer::Granted, vec![]));
    }
    assert_eq!(scheduler.lengths(), []);
}

#[test]
fn each_maximum_is_named_with_the_number_of_its_jobs() {
    let full = |maxima: Maxima| {
        let mut scheduler = Scheduler::default();
        for number in 0..3 {
            scheduler.start(&job("acme", "refunds", number), &Maxima::default());
        }
        scheduler.start(&job("acme", "returns", 0), &Maxima::default());
        scheduler.start(&job("globex", "refunds", 0), &Maxima::default());
        scheduler.request(&job("acme", "refunds", 9), &maxima, at(0)).0
    };
    let waits = |scope, running, maximum| Answer::Full { scope, running, maximum };
    assert_eq!(full(Maxima { skill: Some(3), ..Maxima::default() }), waits(Scope::Skill, 3, 3));
    assert_eq!(full(Maxima { namespace: Some(3), ..Maxima::default() }), waits(Scope::Namespace, 4, 3));
    assert_eq!(full(maxima(5)), waits(Scope::Cluster, 5, 5));
    let all = Maxima { cluster: Some(1), namespace: Some(1), skill: Some(1) };
    assert_eq!(full(all), waits(Scope::Skill, 3, 1), "the narrowest one is named");
    assert_eq!(full(Maxima { cluster: Some(6), namespace: Some(5), skill: Some(4) }), Answer::Granted);
}

#[test]
fn the_oldest_job_of_a_skill_starts_first_and_one_that_had_a_pod_before_it() {
    let mut scheduler = Scheduler::default();
    let maxima = maxima(1);
    for number in [7, 3, 5, 9] {
        scheduler.request(&job("acme", "refunds", number), &maxima, at(0));
    }
    let resumed = QueuedJob { has_started: true, ..job("acme", "refunds", 8) };
    scheduler.request(&resumed, &maxima, at(0));
    let uid = |number: usize| job("acme", "refunds", number).uid;
    assert_eq!(starts(&mut scheduler, &[&uid(7)], 4), [uid(8), uid(3), uid(5), uid(9)]);
}

#[test]
fn a_child_starts_before_jobs_that_people_created_in_its_namespace() {
    let mut scheduler = Scheduler::default();
    let maxima = maxima(1);
    for number in [0, 1, 2] {
        scheduler.request(&job("acme", "refunds", number), &maxima, at(0));
    }
    let child = |skill: &str, number| QueuedJob { is_child: true, ..job("acme", skill, number) };
    let resumed = QueuedJob { has_started: true, ..job("acme", "refunds", 9) };
    for queued in [child("refunds", 7), resumed, child("reviews", 8)] {
        scheduler.request(&queued, &maxima, at(0));
    }
    let uid = |skill: &str, number: usize| job("acme", skill, number).uid;
    let order = starts(&mut scheduler, &[&uid("refunds", 0)], 5);
    assert_eq!(order[0], uid("reviews", 8), "the first Job of the other Skill is no child");
    assert_eq!(order[1..], [uid("refunds", 9), uid("refunds", 7), uid("refunds", 1), uid("refunds", 2)]);
}

#[test]
fn a_thousand_jobs_of_one_namespace_do_not_delay_two_of_another() {
    let mut scheduler = Scheduler::default();
    let maxima = maxima(2);
    request_all(&mut scheduler, "acme", "refunds", 1000, &maxima);
    request_all(&mut scheduler, "globex", "refunds", 2, &maxima);
    let started = starts(&mut scheduler, &["acme/refunds/0000", "acme/refunds/0001"], 4);
    let of_globex: Vec<usize> = (0..4).filter(|at| started[*at].starts_with("globex")).collect();
    assert_eq!(of_globex, [0, 2], "{started:?}");
}

#[test]
fn the_skills_of_a_namespace_take_turns() {
    let mut scheduler = Scheduler::default();
    let maxima = maxima(1);
    request_all(&mut scheduler, "acme", "refunds", 50, &maxima);
    request_all(&mut scheduler, "acme", "returns", 2, &maxima);
    let started = starts(&mut scheduler, &["acme/refunds/0000"], 4);
    assert_eq!(started, ["acme/returns/0000", "acme/refunds/0001", "acme/returns/0001", "acme/refunds/0002"]);
}

#[test]
fn a_full_skill_delays_no_other_skill() {
    let mut scheduler = Scheduler::default();
    let refunds = Maxima { cluster: Some(9), namespace: None, skill: Some(1) };
    request_all(&mut scheduler, "acme", "refunds", 5, &refunds);
    let (answer, _) = scheduler.request(&job("acme", "returns", 0), &maxima(9), at(0));
    assert_eq!(answer, Answer::Granted);
}

#[test]
fn a_raised_maximum_starts_exactly_as_many_jobs_as_it_allows() {
    let mut scheduler = Scheduler::default();
    let maxima = Maxima { cluster: None, namespace: Some(4), skill: Some(1) };
    request_all(&mut scheduler, "acme", "refunds", 9, &maxima);
    let woken = scheduler.set_skill_maximum("acme", "refunds", Some(3));
    assert_eq!(names(&woken), ["acme/refunds/0001", "acme/refunds/0002"]);
    let woken = scheduler.set_skill_maximum("acme", "refunds", None);
    assert_eq!(names(&woken), ["acme/refunds/0003"], "the namespace has room for four");
    assert_eq!(scheduler.set_namespace_maximum("acme", Some(6)).len(), 2);
    // A lowered maximum stops no Job.
    assert_eq!(scheduler.set_namespace_maximum("acme", Some(2)), []);
    assert_eq!(scheduler.finish("acme/refunds/0000"), []);
    assert_eq!(scheduler.set_namespace_maximum("acme", None).len(), 3);
}

#[test]
fn the_queue_has_a_length_and_a_position_for_each_skill() {
    let mut scheduler = Scheduler::default();
    let maxima = Maxima { cluster: Some(2), namespace: None, skill: Some(1) };
    request_all(&mut scheduler, "acme", "refunds", 4, &maxima);
    request_all(&mut scheduler, "globex", "refunds", 2, &maxima);
    request_all(&mut scheduler, "initech", "refunds", 3, &maxima);
    let lengths = scheduler.lengths();
    let lengths: Vec<_> =
        lengths.iter().map(|of| (of.position, of.namespace.as_str(), of.waiting, of.waits_for.as_str())).collect();
    assert_eq!(lengths, [(1, "initech", 3, "cluster"), (2, "acme", 3, "skill"), (3, "globex", 1, "skill")]);
}

/// A scheduler whose namespace `acme` has five waiting Jobs, after a quota has refused the pod of the first at second 0.
fn refused() -> (Scheduler, Option<SignedDuration>) {
    let mut scheduler = Scheduler::default();
    assert_eq!(scheduler.request(&job("acme", "refunds", 0), &Maxima::default(), at(0)).0, Answer::Granted);
    let (retry, woken) = scheduler.refuse("acme/refunds/0000", "exceeded quota", at(0));
    assert_eq!(woken, []);
    for number in 1..5 {
        let (answer, woken) = scheduler.request(&job("acme", "refunds", number), &Maxima::default(), at(0));
        assert_eq!((answer, woken), (Answer::Quota { message: "exceeded quota".into(), retry: None }, vec![]));
    }
    (scheduler, retry)
}

fn seconds(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

#[test]
fn a_quota_is_probed_by_one_job_with_backoff() {
    let (mut scheduler, mut retry) = refused();
    let (mut now, mut probes) = (0, Vec::new());
    for _ in 0..8 {
        now += retry.unwrap().as_secs();
        probes.push(now);
        // A Job that asks too early waits for the rest of the time.
        let (answer, _) = scheduler.request(&job("acme", "refunds", 0), &Maxima::default(), at(now - 1));
        assert_eq!(answer, Answer::Quota { message: "exceeded quota".into(), retry: Some(seconds(1)) });
        let (answer, woken) = scheduler.request(&job("acme", "refunds", 0), &Maxima::default(), at(now));
        assert_eq!((answer, woken), (Answer::Granted, vec![]));
        retry = scheduler.refuse("acme/refunds/0000", "exceeded quota", at(now)).0;
    }
    assert_eq!(probes, [2, 6, 14, 30, 62, 122, 182, 242]);
    assert_eq!(scheduler.lengths()[0].waits_for, "quota");
}

#[test]
fn the_end_of_a_pod_lets_one_job_probe_and_each_success_the_next() {
    let (mut scheduler, _) = refused();
    assert_eq!(scheduler.pod_ended("globex"), []);
    assert_eq!(names(&scheduler.pod_ended("acme")), ["acme/refunds/0000"]);
    assert_eq!(scheduler.pod_ended("acme"), [], "it probes already");
    // Its pod is created: the next Job probes.
    let woken = scheduler.start(&job("acme", "refunds", 0), &Maxima::default());
    assert_eq!(names(&woken), ["acme/refunds/0001"]);
    // A pod ended meanwhile, so the Job tries again at once.
    scheduler.pod_ended("acme");
    let (_, woken) = scheduler.refuse("acme/refunds/0001", "exceeded quota", at(9));
    assert_eq!(names(&woken), ["acme/refunds/0001"]);
    let (retry, woken) = scheduler.refuse("acme/refunds/0001", "exceeded quota", at(9));
    assert_eq!((retry, woken), (Some(seconds(4)), vec![]));
    // Another namespace is not affected.
    assert_eq!(scheduler.request(&job("globex", "refunds", 0), &Maxima::default(), at(9)).0, Answer::Granted);
}

#[test]
fn if_the_job_that_probes_is_deleted_another_one_probes() {
    let (mut scheduler, _) = refused();
    assert_eq!(names(&scheduler.finish("acme/refunds/0000")), ["acme/refunds/0001"], "it would have asked again");
    assert_eq!(names(&scheduler.finish("acme/refunds/0001")), ["acme/refunds/0002"], "it probed");
    for number in [3, 4, 2] {
        assert_eq!(scheduler.finish(&format!("acme/refunds/{number:04}")), []);
    }
    // Nobody waits, so the quota is forgotten.
    assert_eq!(scheduler.request(&job("acme", "refunds", 9), &Maxima::default(), at(1)).0, Answer::Granted);
}

#[test]
fn after_a_restart_one_job_probes_a_quota() {
    let mut scheduler = Scheduler::default();
    for number in 0..3 {
        scheduler.restore_waiting(&job("acme", "refunds", number), &Maxima::default(), Some("exceeded quota"), at(0));
    }
    let (answer, woken) = scheduler.request(&job("acme", "refunds", 2), &Maxima::default(), at(0));
    assert_eq!(answer, Answer::Quota { message: "exceeded quota".into(), retry: None });
    assert_eq!(names(&woken), ["acme/refunds/0000"]);
}

#[test]
fn after_a_restart_no_job_gets_a_place_that_is_taken_and_the_order_stays() {
    let mut scheduler = Scheduler::default();
    let maxima = maxima(1);
    scheduler.start(&job("acme", "refunds", 4), &maxima);
    for number in [9, 6] {
        scheduler.restore_waiting(&job("acme", "refunds", number), &maxima, None, at(0));
    }
    let (answer, woken) = scheduler.request(&job("acme", "refunds", 9), &maxima, at(0));
    assert_eq!((answer, woken), (Answer::Full { scope: Scope::Cluster, running: 1, maximum: 1 }, vec![]));
    assert_eq!(names(&scheduler.finish("acme/refunds/0004")), ["acme/refunds/0006"]);
}

/// A change of the scheduler. The numbers select a namespace, a Skill and a Job.
#[derive(Debug, Clone)]
enum Change {
    Request(usize, usize, usize),
    Start(usize, usize, usize),
    Refuse(usize, usize, usize),
    Finish(usize, usize, usize),
    PodEnds(usize),
    NamespaceMaximum(usize, Option<u32>),
    SkillMaximum(usize, usize, Option<u32>),
}

fn change() -> impl Strategy<Value = Change> {
    let which = || (0..3_usize, 0..2_usize, 0..8_usize);
    let maximum = || prop::option::of(0..5_u32);
    prop_oneof![
        6 => which().prop_map(|(n, s, j)| Change::Request(n, s, j)),
        3 => which().prop_map(|(n, s, j)| Change::Start(n, s, j)),
        1 => which().prop_map(|(n, s, j)| Change::Refuse(n, s, j)),
        4 => which().prop_map(|(n, s, j)| Change::Finish(n, s, j)),
        1 => (0..3_usize).prop_map(Change::PodEnds),
        1 => (0..3_usize, maximum()).prop_map(|(n, maximum)| Change::NamespaceMaximum(n, maximum)),
        1 => (0..3_usize, 0..2_usize, maximum()).prop_map(|(n, s, maximum)| Change::SkillMaximum(n, s, maximum)),
    ]
}

/// The maxima of the world around the scheduler.
struct World {
    scheduler: Scheduler,
    cluster: Option<u32>,
    namespaces: [Option<u32>; 3],
    skills: [[Option<u32>; 2]; 3],
    now: i64,
}

impl World {
    fn maxima(&self, namespace: usize, skill: usize) -> Maxima {
        Maxima { cluster: self.cluster, namespace: self.namespaces[namespace], skill: self.skills[namespace][skill] }
    }

    /// Applies a change, and returns the Jobs that may start because of it.
    fn apply(&mut self, change: &Change) -> Vec<QueuedJob> {
        self.now += 1;
        let name = |number: &usize| format!("n{number}");
        let of = |n: &usize, s: &usize, j: &usize| job(&name(n), &format!("s{s}"), *j);
        match change {
            Change::Request(n, s, j) => {
                let (job, maxima) = (of(n, s, j), self.maxima(*n, *s));
                let had_place = self.scheduler.has_place(&job.uid);
                let (answer, mut woken) = self.scheduler.request(&job, &maxima, at(self.now));
                assert_eq!(answer == Answer::Granted, self.scheduler.has_place(&job.uid));
                if answer == Answer::Granted && !had_place {
                    woken.push(job);
                }
                woken
            }
            // Only a Job with a place creates a pod.
            Change::Start(n, s, j) if self.scheduler.has_place(&of(n, s, j).uid) => {
                self.scheduler.start(&of(n, s, j), &self.maxima(*n, *s))
            }
            Change::Refuse(n, s, j) if self.scheduler.has_place(&of(n, s, j).uid) => {
                self.scheduler.refuse(&of(n, s, j).uid, "exceeded quota", at(self.now)).1
            }
            Change::Start(..) | Change::Refuse(..) => Vec::new(),
            Change::Finish(n, s, j) => self.scheduler.finish(&of(n, s, j).uid),
            Change::PodEnds(n) => self.scheduler.pod_ended(&name(n)),
            Change::NamespaceMaximum(n, maximum) => {
                self.namespaces[*n] = *maximum;
                self.scheduler.set_namespace_maximum(&name(n), *maximum)
            }
            Change::SkillMaximum(n, s, maximum) => {
                self.skills[*n][*s] = *maximum;
                self.scheduler.set_skill_maximum(&name(n), &format!("s{s}"), *maximum)
            }
        }
    }

    /// Counts the Jobs with a place (or the waiting ones) that match.
    fn count(&self, with_place: bool, matches: impl Fn(&QueuedJob) -> bool) -> u32 {
        let entries = self.scheduler.jobs.values().filter(|entry| entry.has_place == with_place && matches(&entry.job));
        u32::try_from(entries.count()).unwrap()
    }

    /// Returns whether all maxima allow one more Job of a Skill.
    fn has_room(&self, namespace: usize, skill: usize) -> bool {
        let (n, s) = (format!("n{namespace}"), format!("s{skill}"));
        let maxima = self.maxima(namespace, skill);
        let below = |maximum: Option<u32>, running: u32| maximum.is_none_or(|maximum| running < maximum);
        below(maxima.cluster, self.count(true, |_| true))
            && below(maxima.namespace, self.count(true, |job| job.namespace == n))
            && below(maxima.skill, self.count(true, |job| job.namespace == n && job.skill == s))
    }
}

proptest! {
    #[test]
    fn the_maxima_hold_and_no_place_stays_free(
        cluster in prop::option::of(1..8_u32),
        changes in prop::collection::vec(change(), 1..120),
    ) {
        let scheduler = Scheduler::default();
        let mut world = World { scheduler, cluster, namespaces: [None; 3], skills: [[None; 2]; 3], now: 0 };
        for change in &changes {
            let before: BTreeSet<String> =
                world.scheduler.jobs.values().filter(|entry| entry.has_place).map(|entry| entry.job.uid.clone()).collect();
            let woken = world.apply(change);
            let after: BTreeSet<String> =
                world.scheduler.jobs.values().filter(|entry| entry.has_place).map(|entry| entry.job.uid.clone()).collect();
            // Exactly the Jobs with new places are woken. One that was refused may get a place again.
            let woken: BTreeSet<String> = woken.into_iter().map(|job| job.uid).collect();
            prop_assert!(after.difference(&before).all(|uid| woken.contains(uid)), "{change:?}");
            prop_assert!(woken.is_subset(&after), "{change:?}");
            for (n, s) in (0..3).flat_map(|n| (0..2).map(move |s| (n, s))) {
                let (namespace, skill) = (format!("n{n}"), format!("s{s}"));
                let of_skill = |job: &QueuedJob| job.namespace == namespace && job.skill == skill;
                let maxima = world.maxima(n, s);
                // A maximum is passed only if it was lowered, and then no Job gets a place.
                let has_new = woken.iter().any(|uid| uid.starts_with(&format!("{namespace}/{skill}/")));
                if has_new {
                    let within = |maximum: Option<u32>, running: u32| maximum.is_none_or(|maximum| running <= maximum);
                    prop_assert!(within(maxima.cluster, world.count(true, |_| true)), "{change:?}");
                    prop_assert!(within(maxima.namespace, world.count(true, |job| job.namespace == namespace)), "{change:?}");
                    prop_assert!(within(maxima.skill, world.count(true, of_skill)), "{change:?}");
                }
                // No Job waits while there is room, except for a quota.
                let probes = world.scheduler.namespaces.get(&namespace).is_some_and(|of| of.quota.is_some());
                prop_assert!(!world.has_room(n, s) || probes || world.count(false, of_skill) == 0, "{change:?}");
            }
        }
    }

    #[test]
    fn every_waiting_job_starts_although_others_keep_coming(
        cluster in 1..4_u32,
        waiting in prop::collection::vec((0..4_usize, 0..3_usize, 1..6_usize), 1..8),
        newcomers in prop::collection::vec((0..6_usize, 0..3_usize), 400),
    ) {
        let mut scheduler = Scheduler::default();
        let maxima = maxima(cluster);
        let mut running: std::collections::VecDeque<QueuedJob> = std::collections::VecDeque::new();
        let mut old = BTreeSet::new();
        let ask = |scheduler: &mut Scheduler, job: QueuedJob| {
            let (answer, woken) = scheduler.request(&job, &maxima, at(0));
            assert_eq!(woken, []);
            (answer == Answer::Granted).then_some(job)
        };
        for (n, s, count) in waiting {
            for number in 0..count {
                let job = job(&format!("n{n}"), &format!("s{s}"), number);
                if old.insert(job.uid.clone()) {
                    running.extend(ask(&mut scheduler, job));
                }
            }
        }
        for job in &running {
            old.remove(&job.uid);
        }
        // At each step, the Job that runs for longest ends, and another one comes.
        for (number, (n, s)) in (1000..).zip(newcomers) {
            if let Some(ended) = running.pop_front() {
                running.extend(scheduler.finish(&ended.uid));
            }
            running.extend(ask(&mut scheduler, job(&format!("n{n}"), &format!("s{s}"), number)));
            for job in &running {
                old.remove(&job.uid);
            }
        }
        prop_assert!(old.is_empty(), "they still wait: {old:?}");
    }

    #[test]
    fn two_busy_namespaces_get_as_many_places(cluster in 2..9_u32, first in 50..90_usize, second in 50..90_usize) {
        let mut scheduler = Scheduler::default();
        let maxima = maxima(cluster);
        request_all(&mut scheduler, "acme", "refunds", first, &maxima);
        request_all(&mut scheduler, "globex", "refunds", second, &maxima);
        let running: Vec<String> = (0..cluster).map(|number| format!("acme/refunds/{number:04}")).collect();
        let running: Vec<&str> = running.iter().map(String::as_str).collect();
        let started = starts(&mut scheduler, &running, 40);
        let places = |namespace: &str| scheduler.namespaces[namespace].running;
        prop_assert!(places("acme").abs_diff(places("globex")) <= 1, "{started:?}");
    }
}
