//! The gateway behind an authenticating proxy: it acts as the users whom the proxy names, as far as the administrator allows it.

/// It installs the release again, which disturbs all stories. `hack/e2e` runs it after the others.
mod alone {
    use bloomery_crds::v1alpha1::Job;
    use bloomery_e2e::harness::gateway::{ACCOUNT, GatewayClient, with_gateway_and};
    use bloomery_e2e::harness::{Shop, Tenant, audit, cluster, eventually, refund_of, story_alone, typed};
    use k8s_openapi::api::rbac::v1::RoleBinding;
    use kube::api::ListParams;
    use serde_json::json;

    /// A user and a group whom the gateway may impersonate.
    const JANE: &str = "jane@acme.io";
    const SUPPORT: &str = "support";

    /// A user and a group whom it may not impersonate.
    const SAM: &str = "sam@acme.io";
    const FINANCE: &str = "finance";

    const GOAL: &str = "Refund order A-17";

    #[tokio::test]
    async fn a_proxy_names_users_of_listed_groups_and_rbac_decides() {
        story_alone(async |tenant| {
            if !cluster::is_local_or_skips("reaching a Service from outside") {
                return;
            }
            let (proxy, proof) = tenant.account("proxy").await;
            let trusted = format!("gateway.proxy.users={{{proxy}}}");
            let users = format!("gateway.proxy.impersonate.users={{{JANE}}}");
            let groups = format!("gateway.proxy.impersonate.groups={{{SUPPORT}}}");
            with_gateway_and(&tenant.cluster, &[&trusted, &users, &groups], async || {
                let shop = tenant.shop(&[refund_of("A-17")]).await;
                tenant.skill("cs-tier-1").await.ready().await;
                tenant.bind(JANE, "edit", "skilljobs").await;
                tenant.bind(SAM, "edit", "skilljobs").await;
                a_user_starts_and_follows_a_job(tenant, &shop, &proof).await;
                only_the_rights_of_listed_groups_count(tenant, &proof).await;
                refusals(tenant, &proof).await;
            })
            .await;
        })
        .await;
    }

    /// The roles `bloomery-edit` and `bloomery-follower` are all that a person needs to start a Job and to follow it.
    #[tokio::test]
    async fn a_proxy_that_may_name_any_user_names_none_of_kubernetes() {
        story_alone(async |tenant| {
            if !cluster::is_local_or_skips("reaching a Service from outside") {
                return;
            }
            let (proxy, proof) = tenant.account("proxy").await;
            let trusted = format!("gateway.proxy.users={{{proxy}}}");
            let groups = format!("gateway.proxy.impersonate.groups={{{SUPPORT}}}");
            let any_user = "gateway.proxy.impersonate.anyUser=true";
            with_gateway_and(&tenant.cluster, &[&trusted, any_user, &groups], async || {
                let shop = tenant.shop(&[refund_of("A-17")]).await;
                tenant.skill("cs-tier-1").await.ready().await;
                tenant.bind(SAM, "bloomery-edit", "skilljobs").await;
                tenant.until_allowed(ACCOUNT, &json!({"resource": "users", "verb": "impersonate", "name": SAM})).await;
                let sam = tenant.gateway(&proof).await.forwarding(SAM, &[SUPPORT]);
                follower_reads_pods_and_their_logs_only(tenant).await;
                let (_, mut stream) = sam.chat("cs-tier-1", GOAL).await;
                let events = stream.rest().await;
                assert_eq!(events.last().map(|event| event.kind.as_str()), Some("conversation.finished"), "{events:?}");
                shop.assert_refunded_once("A-17").await;
                let admin = tenant.gateway(&proof).await.forwarding("system:admin", &[SUPPORT]);
                refused(&admin, 403, &["must not name system:admin"]).await;
            })
            .await;
        })
        .await;
    }

    /// Binds the role to a user, and checks its rights.
    async fn follower_reads_pods_and_their_logs_only(tenant: &Tenant) {
        let asked = |resource: &str, subresource: &str, verb: &str| {
            let namespace = &tenant.namespace;
            json!({"namespace": namespace, "resource": resource, "subresource": subresource, "verb": verb})
        };
        let read_logs = asked("pods", "log", "get");
        assert!(!tenant.is_allowed(SAM, &read_logs).await, "the role bloomery-edit includes no pods");
        tenant.bind(SAM, "bloomery-follower", "skilljobs").await;
        tenant.until_allowed(SAM, &read_logs).await;
        for verb in ["get", "list", "watch", "create", "update", "patch", "delete"] {
            let is_read = matches!(verb, "get" | "list" | "watch");
            assert_eq!(tenant.is_allowed(SAM, &asked("pods", "", verb)).await, is_read, "{verb} pods");
            assert!(!tenant.is_allowed(SAM, &asked("secrets", "", verb)).await, "{verb} secrets");
        }
        assert!(!tenant.is_allowed(SAM, &asked("pods", "exec", "create")).await);
    }

    /// The API server sees the person, with the listed group only.
    async fn a_user_starts_and_follows_a_job(tenant: &Tenant, shop: &Shop, proof: &str) {
        let jane = tenant.gateway(proof).await.forwarding(JANE, &[FINANCE, SUPPORT]);
        // The API server takes some time to see the right of the gateway.
        let name = eventually("the proxy to start a Job for a user", async || {
            let (status, body) = jane.start("cs-tier-1", GOAL).await;
            if status == 202 { Ok(body["job"].as_str().expect("a name").to_owned()) } else { Err(body) }
        })
        .await;
        let job = tenant.api::<Job>().get(&name).await.expect("the gateway has created the Job");
        let in_log = tenant.existing_job(&job).succeeded().await.log.expect("the Job has a log").events;
        shop.assert_refunded_once("A-17").await;
        let events = jane.follow(&name, 0).await.rest().await;
        assert_eq!(events.last().map(|event| event.id), Some(in_log), "{events:?}");

        let creators = eventually("the audit log to have the Job", async || {
            let creators = audit::impersonated_creators(&tenant.namespace, "skilljobs");
            if creators.is_empty() { Err("no Job") } else { Ok(creators) }
        })
        .await;
        let [creator] = creators.as_slice() else { panic!("one Job was created: {creators:?}") };
        assert_eq!((creator.by.as_str(), creator.name.as_str()), (ACCOUNT, JANE));
        let has = |group: &str| creator.groups.iter().any(|found| found == group);
        assert!(has(SUPPORT) && !has(FINANCE), "{creator:?}");
    }

    /// In another namespace, the user has rights only by a group that is not listed.
    async fn only_the_rights_of_listed_groups_count(tenant: &Tenant, proof: &str) {
        let other = Tenant::open(tenant.cluster.clone()).await;
        other
            .create::<RoleBinding>(typed(json!({
                "metadata": {"name": FINANCE},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": FINANCE}],
            })))
            .await;
        let in_finance = other.seen_by(JANE, &[FINANCE]).await;
        eventually("the group to have its rights", async || {
            in_finance.api::<Job>().list(&ListParams::default()).await.map(drop)
        })
        .await;
        let jane = other.gateway(proof).await.forwarding(JANE, &[FINANCE, SUPPORT]);
        let namespace = format!("in the namespace {}", other.namespace);
        refused(&jane, 403, &["the verb create on skilljobs.bloomery.dev", &namespace]).await;
        other.delete().await;
    }

    /// A group that is not listed, a client that is not the proxy, and a user whom the administrator has not listed.
    async fn refusals(tenant: &Tenant, proof: &str) {
        let client =
            async |token: &str, user: &str, group: &str| tenant.gateway(token).await.forwarding(user, &[group]);
        refused(&client(proof, JANE, FINANCE).await, 403, &[JANE, "is in no group"]).await;
        refused(&client("no-token", JANE, SUPPORT).await, 401, &["does not accept the bearer token"]).await;
        let (stranger, token) = tenant.account("stranger").await;
        refused(&client(&token, JANE, SUPPORT).await, 403, &[&stranger, "the verb create on skilljobs"]).await;
        let missing = format!("the verb impersonate on users/{SAM}");
        refused(&client(proof, SAM, SUPPORT).await, 403, &[&missing, "gateway.proxy.impersonate"]).await;
    }

    /// Checks that a client cannot start a Job, and that the problem has all of `parts`.
    async fn refused(client: &GatewayClient, expected: u16, parts: &[&str]) {
        let (status, problem) = client.start("cs-tier-1", GOAL).await;
        assert_eq!(status, expected, "{problem}");
        let detail = problem["detail"].as_str().unwrap_or_default();
        for part in parts {
            assert!(detail.contains(part), "`{part}` should be in the problem: {problem}");
        }
    }
}
