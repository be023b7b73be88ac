//! The runtime of this machine, with a scripted model.

#[cfg(test)]
mod tests {
    use bloomery_crds::outcome::Phase;
    use bloomery_crds::v1alpha1::Limits;
    use bloomery_embed::run::options::{ModelOptions, RunOptions};
    use bloomery_embed::{
        Cursor, ErrorKind, Input, JobEvent, LocalRuntime, LocalTenant, NewJob, OpenRequests, Runtime, Tenant,
    };
    use bloomery_testkit::greeter::{ASKS, SAYS_HELLO, SKILL};
    use bloomery_testkit::model_server::ModelServer;
    use bloomery_testkit::model_server::script::Script;
    use bloomery_testkit::serving::Running;
    use futures::{StreamExt, TryStreamExt};
    use std::collections::BTreeMap;
    use std::fs;
    use std::sync::Arc;
    use std::time::Duration;

    /// A script that lists the files of the Job, and then answers.
    const LISTS_FILES: &str = "
conversations:
  - name: lists
    turns:
      - {calls: [{name: list_files, arguments: {depth: 8}}]}
      - {say: Hello.}
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Hello.}]
";

    /// A script that asks the user a question without choices, and then answers.
    const ASKS_OPENLY: &str = "
conversations:
  - name: asks
    turns:
      - {calls: [{name: ask_user, arguments: {text: 'Whom?'}}]}
      - {say: Hello.}
    finalization: [{json: {passed: true, reasons: []}}]
    polish: [{say: Hello.}]
";

    /// The timeout for events that happen soon.
    const TIMEOUT: Duration = Duration::from_mins(1);

    /// A memory with a Skill, and a scripted model.
    struct Setup {
        dir: tempfile::TempDir,
        model: Running,
    }

    impl Setup {
        async fn new(script: &str) -> Self {
            let model = ModelServer::new(Script::from_yaml(script).unwrap());
            let model = model.start("127.0.0.1:0".parse().unwrap()).await.unwrap();
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir_all(dir.path().join("memory/greeter")).unwrap();
            fs::write(dir.path().join("memory/greeter/skill.yaml"), SKILL).unwrap();
            Self { dir, model }
        }

        fn options(&self) -> RunOptions {
            let model = ModelOptions {
                model: Some("scripted".into()),
                model_url: Some(format!("{}/v1", self.model.url())),
                ..ModelOptions::default()
            };
            let patience = Duration::from_secs(5);
            RunOptions { model, patience, ..RunOptions::new(self.dir.path().join("memory")) }
        }

        /// Opens the tenant in a new runtime, as a new process would.
        async fn open(&self) -> LocalTenant {
            Self::open_with(self.options()).await
        }

        async fn open_with(options: RunOptions) -> LocalTenant {
            let runtime = LocalRuntime::new(BTreeMap::from([("acme".to_owned(), options)])).unwrap();
            assert_eq!(runtime.open("other", "ada".into()).await.unwrap_err().kind, ErrorKind::NotFound);
            runtime.open("acme", "ada".into()).await.unwrap()
        }
    }

    fn greeting(goal: &str) -> NewJob {
        NewJob { skill: Some("greeter".into()), key: Some("k-1".into()), ..NewJob::new(goal) }
    }

    /// Returns the events of the Job until its end.
    async fn events(tenant: &LocalTenant, after: Cursor) -> Vec<JobEvent> {
        let events = tenant.events("k-1", after).await.unwrap().map_ok(Arc::unwrap_or_clone);
        tokio::time::timeout(TIMEOUT, events.try_collect()).await.unwrap().unwrap()
    }

    /// Waits until the Job has a question, and returns the open requests.
    async fn wait_for_question(tenant: &LocalTenant) -> OpenRequests {
        let asked = async {
            let mut events = tenant.events("k-1", Cursor::START).await.unwrap();
            while events.next().await.unwrap().unwrap().kind != "user.asked" {}
            tenant.open_requests("k-1").await.unwrap()
        };
        tokio::time::timeout(TIMEOUT, asked).await.unwrap()
    }

    #[tokio::test]
    async fn a_job_can_be_followed_to_its_answer_and_read_afterwards() {
        let setup = Setup::new(SAYS_HELLO).await;
        let tenant = setup.open().await;
        assert_eq!(tenant.start(greeting("Greet")).await.unwrap(), "k-1");
        let all = events(&tenant, Cursor::START).await;
        let numbers: Vec<u64> = all.iter().map(|event| event.seq).collect();
        assert_eq!(numbers, (1..=u64::try_from(all.len()).unwrap()).collect::<Vec<_>>());
        let last = all.last().unwrap();
        assert_eq!(
            (last.kind.as_str(), last.data.pointer("/result/text")),
            ("conversation.finished", Some(&"Hello.".into()))
        );
        assert_eq!(events(&tenant, Cursor::after(3)).await, all[3..]);
        assert_eq!(tenant.timeline("k-1").await.unwrap(), all);

        let status = tenant.status("k-1").await.unwrap();
        assert_eq!(
            (status.skill.as_str(), status.goal.as_str(), status.status.phase),
            ("greeter", "Greet", Phase::Succeeded)
        );
        let jobs = tenant.jobs().await.unwrap();
        assert_eq!(
            jobs.iter().map(|job| (job.job.as_str(), job.phase)).collect::<Vec<_>>(),
            [("k-1", Phase::Succeeded)]
        );
        assert!(jobs[0].created.is_some());
        assert!(tenant.model_context("k-1").await.unwrap().system.is_some());
        assert_eq!(tenant.status("k-2").await.unwrap_err().kind, ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn the_same_key_is_the_same_job_and_an_ended_job_accepts_no_input() {
        let setup = Setup::new(SAYS_HELLO).await;
        let tenant = setup.open().await;
        tenant.start(greeting("Greet")).await.unwrap();
        let before = events(&tenant, Cursor::START).await;
        assert_eq!(tenant.start(greeting("Greet")).await.unwrap(), "k-1");
        assert_eq!(tenant.start(greeting("Insult")).await.unwrap_err().kind, ErrorKind::Conflict);
        for input in [Input::Cancel, Input::Message { text: "hi".into() }] {
            assert_eq!(tenant.send("k-1", input).await.unwrap_err().kind, ErrorKind::Conflict);
        }
        assert_eq!(events(&tenant, Cursor::START).await, before);
    }

    #[tokio::test]
    async fn a_repeated_start_finds_its_job_after_the_skill_has_changed_or_is_gone() {
        let setup = Setup::new(SAYS_HELLO).await;
        let tenant = setup.open().await;
        tenant.start(greeting("Greet")).await.unwrap();
        let before = events(&tenant, Cursor::START).await;
        let other = || NewJob { key: Some("k-2".into()), ..greeting("Greet") };
        let file = setup.dir.path().join("memory/greeter/skill.yaml");
        fs::write(&file, format!("{SKILL}  resources: [{{name: files, type: filesystem, required: true}}]\n")).unwrap();
        assert_eq!(tenant.start(other()).await.unwrap_err().kind, ErrorKind::Invalid);
        assert_eq!(tenant.start(greeting("Greet")).await.as_deref(), Ok("k-1"));
        fs::remove_file(&file).unwrap();
        assert_eq!(tenant.start(other()).await.unwrap_err().kind, ErrorKind::NotFound);
        assert_eq!(tenant.start(greeting("Greet")).await.as_deref(), Ok("k-1"));
        assert_eq!(tenant.start(greeting("Insult")).await.unwrap_err().kind, ErrorKind::Conflict);
        assert_eq!(events(&tenant, Cursor::START).await, before);
    }

    #[tokio::test]
    async fn a_repeated_start_with_other_parameters_is_a_conflict() {
        let setup = Setup::new(SAYS_HELLO).await;
        let skill = format!("{SKILL}  resources: [{{name: site, type: api_endpoint}}]\n");
        fs::write(setup.dir.path().join("memory/greeter/skill.yaml"), skill).unwrap();
        let file = setup.dir.path().join("key");
        fs::write(&file, "hunter22-hunter22").unwrap();
        let mut options = setup.options();
        options.model.api_key_file = vec![file.display().to_string()];
        let tenant = Setup::open_with(options).await;
        let first = NewJob {
            resources: BTreeMap::from([("site".to_owned(), "https://a.example".to_owned())]),
            limits: Some(Limits { steps: Some(9), ..Limits::default() }),
            ..greeting("Greet hunter22-hunter22")
        };
        tenant.start(first.clone()).await.unwrap();
        events(&tenant, Cursor::START).await;
        // The stored goal lacks the secret.
        let goal = tenant.status("k-1").await.unwrap().goal;
        assert!(goal.starts_with("Greet") && !goal.contains("hunter22"), "{goal}");
        assert_eq!(tenant.start(first.clone()).await.as_deref(), Ok("k-1"));
        for other in [
            NewJob { goal: "Greet".into(), ..first.clone() },
            NewJob { resources: BTreeMap::new(), ..first.clone() },
            NewJob { limits: None, ..first.clone() },
            NewJob { continues: Some("k-0".into()), ..first.clone() },
        ] {
            assert_eq!(tenant.start(other.clone()).await.unwrap_err().kind, ErrorKind::Conflict, "{other:?}");
        }
    }

    #[tokio::test]
    async fn a_job_that_was_stored_and_has_not_begun_goes_on_with_a_repeated_start() {
        let (first, second) = (Setup::new(SAYS_HELLO).await, Setup::new(SAYS_HELLO).await);
        let tenant = first.open().await;
        tenant.start(greeting("Greet")).await.unwrap();
        events(&tenant, Cursor::START).await;
        // Another memory has the parameters of the Job, and no event.
        let [from, to] = [&first, &second].map(|setup| setup.dir.path().join("memory/greeter/jobs/k-1"));
        fs::create_dir_all(&to).unwrap();
        fs::copy(from.join("run.json"), to.join("run.json")).unwrap();
        let tenant = second.open().await;
        // A start with other parameters writes nothing.
        assert_eq!(tenant.start(greeting("Insult")).await.unwrap_err().kind, ErrorKind::Conflict);
        assert_eq!(fs::read_dir(second.dir.path().join("memory/greeter")).unwrap().count(), 2);
        assert_eq!(tenant.start(greeting("Greet")).await.as_deref(), Ok("k-1"));
        assert_eq!(events(&tenant, Cursor::START).await.last().unwrap().kind, "conversation.finished");
    }

    #[tokio::test]
    async fn an_ended_job_can_be_continued_as_soon_as_its_last_event_is_there() {
        let setup = Setup::new(SAYS_HELLO).await;
        let tenant = setup.open().await;
        tenant.start(greeting("Greet")).await.unwrap();
        events(&tenant, Cursor::START).await;
        let next = NewJob { key: Some("k-2".into()), continues: Some("k-1".into()), ..greeting("Again") };
        assert_eq!(tenant.start(next).await.as_deref(), Ok("k-2"));
        let unknown = NewJob { key: Some("k-3".into()), continues: Some("k-9".into()), ..greeting("Again") };
        assert_eq!(tenant.start(unknown).await.unwrap_err().kind, ErrorKind::Invalid);
    }

    #[tokio::test]
    async fn a_question_is_answered_by_the_caller() {
        let setup = Setup::new(ASKS).await;
        let tenant = setup.open().await;
        tenant.start(greeting("Greet")).await.unwrap();
        let question = wait_for_question(&tenant).await.questions[0].question.clone();
        assert_eq!((question.text.as_str(), question.choices.len()), ("Whom?", 2));
        tenant.send("k-1", Input::Reply { question: question.id, text: "Jane".into() }).await.unwrap();
        let recorded = tenant.timeline("k-1").await.unwrap();
        assert!(recorded.iter().any(|event| event.kind == "user.replied"), "{recorded:?}");
        let all = events(&tenant, Cursor::START).await;
        let reply = all.iter().find(|event| event.kind == "user.replied").unwrap();
        assert_eq!(reply.data.get("by"), Some(&"ada".into()));
        assert_eq!(tenant.status("k-1").await.unwrap().status.phase, Phase::Succeeded);
    }

    /// The key belongs to the second process, and neither the log nor the parameters of the Job have it.
    #[tokio::test]
    async fn an_answer_with_a_secret_that_only_the_process_of_the_job_knows_is_recorded() {
        let setup = Setup::new(ASKS_OPENLY).await;
        let first = setup.open().await;
        first.start(greeting("Greet")).await.unwrap();
        let question = wait_for_question(&first).await.questions[0].question.id.clone();
        first.close().await;
        let file = setup.dir.path().join("key");
        fs::write(&file, "hunter22-hunter22").unwrap();
        let mut options = setup.options();
        options.model.api_key_file = vec![file.display().to_string()];
        let second = Setup::open_with(options).await;
        let text = "Jane, whose password is hunter22-hunter22".to_owned();
        assert_eq!(second.send("k-1", Input::Reply { question, text }).await, Ok(()));
        let all = events(&second, Cursor::START).await;
        let reply = all.iter().find(|event| event.kind == "user.replied").unwrap().data.to_string();
        assert!(reply.contains("Jane, whose password is [redacted") && !reply.contains("hunter22"), "{reply}");
        assert_eq!(second.status("k-1").await.unwrap().status.phase, Phase::Succeeded);
    }

    #[tokio::test]
    async fn subscribers_at_any_cursor_see_each_event_once() {
        let setup = Setup::new(ASKS).await;
        let tenant = setup.open().await;
        tenant.start(greeting("Greet")).await.unwrap();
        let question = wait_for_question(&tenant).await.questions[0].question.id.clone();
        let subscribed = (0..100).map(|n| events(&tenant, Cursor::after(n % 5)));
        let answered = tenant.send("k-1", Input::Reply { question, text: "Jane".into() });
        let (seen, answered) = tokio::join!(futures::future::join_all(subscribed), answered);
        answered.unwrap();
        let all = tenant.timeline("k-1").await.unwrap();
        for (n, seen) in seen.iter().enumerate() {
            assert_eq!(*seen, all[n % 5..], "{n}");
        }
    }

    #[tokio::test]
    async fn a_job_that_was_parked_goes_on_in_another_process() {
        let setup = Setup::new(ASKS).await;
        let first = setup.open().await;
        first.start(greeting("Greet")).await.unwrap();
        wait_for_question(&first).await;
        first.close().await;
        assert_eq!(first.start(greeting("Greet")).await.unwrap_err().kind, ErrorKind::Unavailable);

        let second = setup.open().await;
        let question = second.open_requests("k-1").await.unwrap().questions[0].question.id.clone();
        second.send("k-1", Input::Reply { question, text: "Jane".into() }).await.unwrap();
        let all = events(&second, Cursor::START).await;
        assert_eq!(all.iter().filter(|event| event.kind == "conversation.epoch.started").count(), 2);
        assert_eq!(second.status("k-1").await.unwrap().status.phase, Phase::Succeeded);
    }

    #[tokio::test]
    async fn jobs_go_on_after_a_restart_once() {
        let setup = Setup::new(ASKS).await;
        let first = setup.open().await;
        first.start(greeting("Greet")).await.unwrap();
        let question = wait_for_question(&first).await;
        let second = setup.open().await;
        assert!(second.resume_jobs().await.unwrap().is_empty(), "the first process drives the Job");
        first.close().await;

        let third = setup.open().await;
        assert_eq!(third.resume_jobs().await.unwrap(), ["k-1"]);
        assert!(third.resume_jobs().await.unwrap().is_empty());
        assert_eq!(third.open_requests("k-1").await.unwrap(), question);
        // A client of the first process goes on with its cursor.
        let before = first.timeline("k-1").await.unwrap().len();
        let question = question.questions[0].question.id.clone();
        third.send("k-1", Input::Reply { question, text: "Jane".into() }).await.unwrap();
        let later = events(&third, Cursor::after(u64::try_from(before).unwrap())).await;
        assert_eq!(later, third.timeline("k-1").await.unwrap()[before..]);
        assert_eq!(third.status("k-1").await.unwrap().status.phase, Phase::Succeeded);
        assert!(setup.open().await.resume_jobs().await.unwrap().is_empty(), "the Job has ended");
    }

    #[tokio::test]
    async fn a_job_that_binds_files_outside_of_the_root_does_not_go_on() {
        let setup = Setup::new(ASKS).await;
        let first = setup.open().await;
        let files = setup.dir.path().join("files");
        fs::create_dir(&files).unwrap();
        let skill = format!("{SKILL}  resources: [{{name: files, type: filesystem}}]\n");
        fs::write(setup.dir.path().join("memory/greeter/skill.yaml"), skill).unwrap();
        let resources = BTreeMap::from([("files".to_owned(), files.display().to_string())]);
        first.start(NewJob { resources, ..greeting("Greet") }).await.unwrap();
        let question = wait_for_question(&first).await.questions[0].question.id.clone();
        first.close().await;
        let root = setup.dir.path().join("root");
        fs::create_dir(&root).unwrap();
        let second = Setup::open_with(RunOptions { root: Some(root), ..setup.options() }).await;
        assert!(second.resume_jobs().await.unwrap().is_empty());
        let reply = Input::Reply { question, text: "Jane".into() };
        let error = second.send("k-1", reply).await.unwrap_err();
        assert!(error.message.contains("is not in the root"), "{error}");
    }

    #[tokio::test]
    async fn a_parked_job_can_be_cancelled() {
        let setup = Setup::new(ASKS).await;
        let first = setup.open().await;
        first.start(greeting("Greet")).await.unwrap();
        wait_for_question(&first).await;
        first.close().await;
        let second = setup.open().await;
        second.send("k-1", Input::Cancel).await.unwrap();
        assert_eq!(second.status("k-1").await.unwrap().status.phase, Phase::Cancelled);
    }

    #[tokio::test]
    async fn no_name_leads_out_of_the_memory() {
        let setup = Setup::new(SAYS_HELLO).await;
        let tenant = setup.open().await;
        let file = setup.dir.path().join("memory/greeter/skill.yaml").display().to_string();
        for skill in [file.as_str(), "-", "../greeter"] {
            let job = NewJob { skill: Some(skill.to_owned()), ..NewJob::new("Greet") };
            assert_eq!(tenant.start(job).await.unwrap_err().kind, ErrorKind::Invalid, "{skill}");
            assert_eq!(tenant.tools(skill).await.unwrap_err().kind, ErrorKind::Invalid, "{skill}");
        }
        let job = NewJob { key: Some("../k".into()), ..greeting("Greet") };
        assert_eq!(tenant.start(job).await.unwrap_err().kind, ErrorKind::Invalid);
        assert_eq!(tenant.status("../k").await.unwrap_err().kind, ErrorKind::NotFound);
        assert!(tenant.jobs().await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn tenants_of_a_directory_do_not_see_each_other() {
        let setup = Setup::new(LISTS_FILES).await;
        let (files, memories) = (setup.dir.path().join("files"), setup.dir.path().join("files/memories"));
        for name in ["acme", "globex"] {
            fs::create_dir_all(memories.join(name).join("greeter")).unwrap();
            let skill = format!("{SKILL}  resources: [{{name: files, type: filesystem}}]\n");
            fs::write(memories.join(name).join("greeter/skill.yaml"), skill).unwrap();
        }
        std::os::unix::fs::symlink(memories.join("acme"), memories.join("link")).unwrap();
        fs::write(files.join("seen.txt"), "").unwrap();
        let runtime = LocalRuntime::for_directory(&memories, setup.options());
        for name in ["link", "..", "acme/greeter", "none", ""] {
            assert_eq!(runtime.open(name, "ada".into()).await.unwrap_err().kind, ErrorKind::NotFound, "{name}");
        }
        let acme = runtime.open("acme", "ada".into()).await.unwrap();
        let globex = runtime.open("globex", "bob".into()).await.unwrap();
        let binding = |path: &std::path::Path| BTreeMap::from([("files".to_owned(), path.display().to_string())]);
        acme.start(NewJob { resources: binding(&files), ..greeting("Greet") }).await.unwrap();
        let all = events(&acme, Cursor::START).await;
        let listed = all.iter().find(|event| event.kind == "tool.completed").unwrap().data.to_string();
        assert!(listed.contains("seen.txt") && !listed.contains("greeter"), "{listed}");

        assert!(globex.jobs().await.unwrap().is_empty() && globex.resume_jobs().await.unwrap().is_empty());
        assert_eq!(globex.status("k-1").await.unwrap_err().kind, ErrorKind::NotFound);
        assert_eq!(globex.send("k-1", Input::Cancel).await.unwrap_err().kind, ErrorKind::NotFound);
        let of_acme = NewJob { resources: binding(&memories.join("acme/greeter")), ..greeting("Greet") };
        let error = globex.start(of_acme).await.unwrap_err();
        assert!(error.message.contains("is in the memory"), "{error}");
        let skill = format!("{SKILL}  resources: [{{name: files, type: credential}}]\n");
        fs::write(memories.join("globex/greeter/skill.yaml"), skill).unwrap();
        let resources =
            BTreeMap::from([("files".to_owned(), format!("@{}", memories.join("acme/greeter/skill.yaml").display()))]);
        let error = globex.start(NewJob { resources, ..greeting("Greet") }).await.unwrap_err();
        assert!(error.message.contains("is in the memory"), "{error}");
        // The same key is another Job.
        assert_eq!(globex.start(greeting("Insult")).await.unwrap(), "k-1");
        assert_eq!(acme.status("k-1").await.unwrap().goal, "Greet");
        globex.close().await;
    }

    #[tokio::test]
    async fn two_tenants_cannot_share_a_memory() {
        let setup = Setup::new(SAYS_HELLO).await;
        let tenants = ["acme", "other"].map(|name| (name.to_owned(), setup.options()));
        let error = LocalRuntime::new(BTreeMap::from(tenants)).unwrap_err();
        assert!(error.message.contains("the tenants acme and other have the same memory"), "{error}");
    }
}
