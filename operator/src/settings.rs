//! The settings of an installation: read once at start, from environment variables or flags.

mod network;
mod parse;
mod pod_defaults;
mod skill_directory;
mod tenants;

pub use network::{DnsServers, LABEL_NAMESPACE, NetworkSettings, SharedHost};
pub use pod_defaults::{Amounts, PodDefaults};
pub use skill_directory::SkillDirectorySettings;
pub use tenants::TenantSettings;

use crate::approval::policy::ShippedPolicies;
use bloomery_crds::children::DEFAULT_CHILD_WAIT_SECONDS;
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser, ValueEnum};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The operator's settings. Each is an environment variable and a flag.
#[derive(Debug, Clone, Parser)]
#[command(name = "bloomery-operator", version, about = "The Kubernetes operator of Bloomery")]
pub struct Settings {
    /// Name of the operator's pod, which identifies it in leader election.
    #[arg(long, env = "POD_NAME", value_parser = parse::not_empty)]
    pub pod_name: String,
    /// Namespace of the operator.
    #[arg(long, env = "POD_NAMESPACE", value_parser = parse::not_empty)]
    pub pod_namespace: String,
    /// Namespaces that the operator serves, separated by commas. Default: all namespaces.
    #[arg(long, env = "BLOOMERY_NAMESPACES", value_delimiter = ',', value_parser = parse::namespace)]
    pub namespaces: Vec<String>,
    /// Filter for log lines: a level, or `target=level` pairs.
    #[arg(long = "log", env = "BLOOMERY_LOG", default_value = "info", value_parser = parse::log_filter)]
    pub log_filter: String,
    /// Address where health and metrics are served. `[::]` means all addresses of IPv6 and IPv4.
    #[arg(long, env = "BLOOMERY_HTTP_ADDR", default_value = "[::]:8080")]
    pub http_addr: SocketAddr,
    /// Name of the Lease for leader election.
    #[arg(long, env = "BLOOMERY_LEASE_NAME", default_value = "bloomery-operator", value_parser = parse::not_empty)]
    pub lease_name: String,
    /// The report endpoint.
    #[command(flatten)]
    pub report: ReportSettings,
    /// The worker pods.
    #[command(flatten)]
    pub worker: WorkerSettings,
    /// The pods of MCP servers that the operator runs.
    #[command(flatten)]
    pub mcp: McpSettings,
    /// The memory of a tenant.
    #[command(flatten)]
    pub memory: MemorySettings,
    /// The network of tenants, as JSON of `policies` (write network policies), `dns` and `shared` (`peers` and `ports` of network
    /// policies), `deny` (ranges) and `operator` (the labels of the operator's pods).
    #[arg(long, env = "BLOOMERY_NETWORK", default_value = "{}", value_parser = parse::network)]
    pub network: NetworkSettings,
    /// The limits of each tenant, as JSON of `allowedImages`, `maxLimits`, `allowedTools`, `blockedTools`, `allowedModels` and
    /// `allowedModelUrls`. Annotations of a namespace replace the values there.
    #[arg(long, env = "BLOOMERY_TENANTS", default_value = "{}", value_parser = parse::tenants)]
    pub tenants: TenantSettings,
    /// Directory with the templates of Skills, each in the file `<name>.yaml`. Default: no Skill is created from a template.
    #[arg(long, env = "BLOOMERY_SKILL_TEMPLATES")]
    pub skill_templates: Option<PathBuf>,
    /// The number of Jobs that run at once, and the Jobs that they invoke.
    #[command(flatten)]
    pub jobs: JobSettings,
    /// Approvals of held calls.
    #[command(flatten)]
    pub approvals: ApprovalSettings,
    /// Replies to questions.
    #[command(flatten)]
    pub replies: ReplySettings,
}

/// Settings of the number of Jobs that run at once, and of the Jobs that they invoke.
#[derive(Debug, Clone, clap::Args)]
pub struct JobSettings {
    /// The largest number of Jobs that run at once in the cluster. Default: no maximum.
    #[arg(long = "max-running-jobs", env = "BLOOMERY_MAX_RUNNING_JOBS", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_running: Option<u32>,
    /// The largest number of Jobs that run at once in a namespace without the annotation `bloomery.dev/max-running-jobs`.
    /// Default: no maximum.
    #[arg(
        long = "max-running-jobs-per-namespace",
        env = "BLOOMERY_MAX_RUNNING_JOBS_PER_NAMESPACE",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub max_running_per_namespace: Option<u32>,
    /// Time that a worker waits for a Job that it invoked before it parks, such as `30s`.
    #[arg(long = "child-wait", env = "BLOOMERY_CHILD_WAIT", default_value = "30s", value_parser = parse::positive_duration)]
    pub child_wait: Duration,
}

impl JobSettings {
    /// Returns the time that a worker waits for a Job that it invoked, in seconds, at least 1; none for the default. Without a wait, each
    /// worker would park at once.
    pub fn child_wait_seconds(&self) -> Option<u32> {
        let seconds = u32::try_from(self.child_wait.as_secs()).unwrap_or(u32::MAX).max(1);
        Some(seconds).filter(|seconds| *seconds != DEFAULT_CHILD_WAIT_SECONDS)
    }
}

/// Settings of replies to questions.
#[derive(Debug, Clone, clap::Args)]
pub struct ReplySettings {
    /// Time that a Job waits for a reply if the Skill does not set it, such as `168h`.
    // The default id, `expiry`, belongs to the flag of the Approvals' expiry.
    #[arg(id = "reply-expiry", long = "reply-expiry", env = "BLOOMERY_REPLY_EXPIRY", default_value = "168h", value_parser = parse::duration)]
    pub expiry: Duration,
}

/// Settings of Approvals.
#[derive(Debug, Clone, clap::Args)]
pub struct ApprovalSettings {
    /// Time that an Approval stays open if the Skill does not set it, such as `24h`.
    #[arg(long = "approval-expiry", env = "BLOOMERY_APPROVAL_EXPIRY", default_value = "24h", value_parser = parse::duration)]
    pub expiry: Duration,
    /// The shipped admission policies that approvals depend on: JSON of `operator` (the operator's own user name),
    /// `approvals`, `pods` and `tokens` (the `name`, `policy` and `binding` of each). Without them no approvers are asked,
    /// and held calls wait.
    #[arg(long = "approvals", env = "BLOOMERY_APPROVALS", value_parser = parse::shipped_policies)]
    pub shipped_policies: Option<ShippedPolicies>,
}

impl ApprovalSettings {
    /// The name of the admission policy that validates decisions.
    pub fn policy_name(&self) -> &str {
        self.shipped_policies.as_ref().map_or("bloomery-approvals", |policies| &policies.approvals.name)
    }
}

/// Settings of the report endpoint.
#[derive(Debug, Clone, clap::Args)]
pub struct ReportSettings {
    /// Address where reports are accepted. `[::]` means all addresses of IPv6 and IPv4.
    #[arg(long = "report-addr", env = "BLOOMERY_REPORT_ADDR", default_value = "[::]:8443")]
    pub addr: SocketAddr,
    /// URL under which workers reach the report endpoint, without a path. Default: the Service `bloomery-operator` in
    /// the operator's namespace.
    #[arg(long = "report-url", env = "BLOOMERY_REPORT_URL", value_parser = parse::https_url)]
    pub url: Option<String>,
    /// Secret in the operator's namespace that holds the CA of the report endpoint.
    #[arg(
        long = "report-ca-secret",
        env = "BLOOMERY_REPORT_CA_SECRET",
        default_value = "bloomery-report-ca",
        value_parser = parse::not_empty
    )]
    pub ca_secret: String,
}

/// Settings of worker pods.
#[derive(Debug, Clone, clap::Args)]
pub struct WorkerSettings {
    /// Image of workers.
    #[arg(long = "worker-image", env = "BLOOMERY_WORKER_IMAGE", value_parser = parse::not_empty)]
    pub image: String,
    /// Pull policy of the image.
    #[arg(
        long = "worker-image-pull-policy",
        env = "BLOOMERY_WORKER_IMAGE_PULL_POLICY",
        default_value = "IfNotPresent"
    )]
    pub pull_policy: PullPolicy,
    /// Resources of each worker pod, as the JSON of a Kubernetes `ResourceRequirements`.
    #[arg(
        long = "worker-resources",
        env = "BLOOMERY_WORKER_RESOURCES",
        default_value = r#"{"requests":{"cpu":"20m","memory":"32Mi"},"limits":{"memory":"256Mi"}}"#,
        value_parser = parse::resources
    )]
    pub resources: ResourceRequirements,
    /// User ID of workers. Not root.
    #[arg(
        long = "run-as-user",
        env = "BLOOMERY_RUN_AS_USER",
        default_value_t = 65532,
        value_parser = clap::value_parser!(i64).range(1..)
    )]
    pub run_as_user: i64,
    /// Group ID of workers.
    #[arg(
        long = "run-as-group",
        env = "BLOOMERY_RUN_AS_GROUP",
        default_value_t = 65532,
        value_parser = clap::value_parser!(i64).range(1..)
    )]
    pub run_as_group: i64,
    /// Group ID that owns the memory volume.
    #[arg(
        long = "fs-group",
        env = "BLOOMERY_FS_GROUP",
        default_value_t = 65532,
        value_parser = clap::value_parser!(i64).range(1..)
    )]
    pub fs_group: i64,
    /// Leave the users and groups of worker pods to the platform, which chooses them for each namespace.
    #[arg(long = "uids-from-platform", env = "BLOOMERY_UIDS_FROM_PLATFORM")]
    pub uids_from_platform: bool,
    /// Addresses that tenants may connect to, in addition to public addresses and Services of their namespace: ranges in CIDR
    /// notation, separated by commas.
    #[arg(long = "worker-endpoint-ranges", env = "BLOOMERY_WORKER_ENDPOINT_RANGES", value_delimiter = ',')]
    pub endpoint_ranges: Vec<IpNet>,
    /// Labels, scheduling and pull secrets of each worker pod, as JSON of `imagePullSecrets`, `nodeSelector`, `tolerations`,
    /// `priorityClassName`, `runtimeClassName`, `hostUsers`, `podLabels`, `podAnnotations` and `skillMaySet` (the fields that a
    /// Skill may set too).
    #[arg(long = "worker-pod", env = "BLOOMERY_WORKER_POD", default_value = "{}", value_parser = parse::pod_defaults)]
    pub pod: PodDefaults,
    /// Format of the workers' logs.
    #[arg(long = "worker-log-format", env = "BLOOMERY_WORKER_LOG_FORMAT", default_value = "text")]
    pub log_format: LogFormat,
    /// Time that a worker waits for a missing key of a Secret, such as `30m`. A shorter deadline of its pod counts more.
    #[arg(long = "worker-secret-wait", env = "BLOOMERY_WORKER_SECRET_WAIT", default_value = "30m", value_parser = parse::duration)]
    pub secret_wait: Duration,
    /// Time that finished worker pods are kept for `kubectl logs`, such as `10m`.
    #[arg(long = "pod-retention", env = "BLOOMERY_POD_RETENTION", default_value = "10m", value_parser = parse::duration)]
    pub pod_retention: Duration,
    /// The bounds of a Skill's directory in the memory.
    #[command(flatten)]
    pub skill_directory: SkillDirectorySettings,
}

/// Settings of the pods of MCP servers.
#[derive(Debug, Clone, clap::Args)]
pub struct McpSettings {
    /// Labels, scheduling and pull secrets of each pod of an MCP server, as JSON of the same fields as for worker pods.
    #[arg(id = "mcp-pod", long = "mcp-pod", env = "BLOOMERY_MCP_POD", default_value = "{}", value_parser = parse::pod_defaults)]
    pub pod: PodDefaults,
    /// Resources of an MCP server whose Skill sets none, as the JSON of a Kubernetes `ResourceRequirements`.
    #[arg(
        id = "mcp-resources",
        long = "mcp-resources",
        env = "BLOOMERY_MCP_RESOURCES",
        default_value = r#"{"requests":{"cpu":"20m","memory":"64Mi"},"limits":{"memory":"512Mi"}}"#,
        value_parser = parse::resources
    )]
    pub resources: ResourceRequirements,
    /// The most that a Skill may request or set as a limit for its MCP server, as JSON such as `{"memory":"2Gi"}`. A limit that
    /// the Skill does not set is this one.
    #[arg(long = "mcp-max-resources", env = "BLOOMERY_MCP_MAX_RESOURCES", default_value = "{}", value_parser = parse::amounts)]
    pub max_resources: Amounts,
}

/// Settings of the memory claim of a tenant.
#[derive(Debug, Clone, clap::Args)]
pub struct MemorySettings {
    /// Size of a tenant's memory claim.
    #[arg(long = "memory-size", env = "BLOOMERY_MEMORY_SIZE", default_value = "1Gi", value_parser = parse::quantity)]
    pub size: Quantity,
    /// Storage class of the memory claim. Default: the cluster's default class.
    #[arg(long = "memory-class", env = "BLOOMERY_MEMORY_CLASS", value_parser = parse::not_empty)]
    pub class: Option<String>,
    /// Access mode of the memory claim: whether all workers of a tenant run on one node.
    #[arg(long = "memory-access-mode", env = "BLOOMERY_MEMORY_ACCESS_MODE", default_value = "ReadWriteOnce")]
    pub access_mode: AccessMode,
}

impl Settings {
    /// Describes invalid settings, with the names of their environment variables.
    pub fn describe_error(error: &clap::Error) -> String {
        let flags: Vec<&String> = match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(flag)) => vec![flag],
            Some(ContextValue::Strings(flags)) => flags.iter().collect(),
            _ => Vec::new(),
        };
        let command = Self::command();
        let variables = command.get_arguments().filter_map(|argument| {
            let long = format!("--{}", argument.get_long()?);
            let named = flags.iter().any(|flag| flag.split_whitespace().next() == Some(&long));
            argument.get_env().filter(|_| named).map(|name| name.to_string_lossy().into_owned())
        });
        let variables: Vec<String> = variables.collect();
        if variables.is_empty() { error.to_string() } else { format!("{}: {error}", variables.join(", ")) }
    }

    /// The URL under which workers reach the report endpoint, without a path.
    pub fn report_url(&self) -> String {
        let given = self.report.url.clone();
        given.unwrap_or_else(|| format!("https://bloomery-operator.{}.svc:8443", self.pod_namespace))
    }
}

/// The pull policy of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, strum::Display, strum::IntoStaticStr)]
#[value(rename_all = "PascalCase")]
pub enum PullPolicy {
    /// At every start.
    Always,
    /// If the node does not have the image.
    IfNotPresent,
    /// Never: the node must have the image.
    Never,
}

/// The format of the lines that a worker logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, strum::Display)]
#[value(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object in each line.
    Json,
}

/// The access mode of a memory claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, strum::Display, strum::IntoStaticStr)]
#[value(rename_all = "PascalCase")]
pub enum AccessMode {
    /// By pods of one node.
    ReadWriteOnce,
    /// By pods of all nodes.
    ReadWriteMany,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn parse(more: &[&str]) -> Result<Settings, clap::Error> {
        let needed = ["operator", "--pod-name=op-0", "--pod-namespace=bloomery", "--worker-image=worker:1"];
        Settings::try_parse_from(needed.iter().chain(more))
    }

    #[test]
    fn all_settings_except_the_image_and_the_pod_have_defaults() {
        let settings = parse(&[]).unwrap();
        assert_eq!(settings.report_url(), "https://bloomery-operator.bloomery.svc:8443");
        assert_eq!(settings.worker.pod_retention, Duration::from_mins(10));
        assert_eq!(settings.worker.pull_policy.to_string(), "IfNotPresent");
        assert_eq!(settings.memory.access_mode.to_string(), "ReadWriteOnce");
        assert!(settings.namespaces.is_empty(), "it serves all namespaces");
        assert_eq!(settings.jobs.child_wait_seconds(), None, "a worker has the same default");
        assert_eq!(parse(&["--child-wait=2m"]).unwrap().jobs.child_wait_seconds(), Some(120));
        assert_eq!(parse(&["--child-wait=10ms"]).unwrap().jobs.child_wait_seconds(), Some(1));
        assert!(parse(&["--child-wait=0s"]).unwrap_err().to_string().contains("must be longer than 0s"));
    }

    #[test]
    fn the_served_namespaces_are_a_list() {
        assert_eq!(parse(&["--namespaces=acme,beta"]).unwrap().namespaces, ["acme", "beta"]);
    }

    #[rstest]
    #[case("--report-url=http://plain", "BLOOMERY_REPORT_URL")]
    #[case("--report-url=https://host/path", "BLOOMERY_REPORT_URL")]
    #[case("--worker-resources={", "BLOOMERY_WORKER_RESOURCES")]
    #[case("--memory-size=1Gb", "BLOOMERY_MEMORY_SIZE")]
    #[case("--memory-access-mode=Any", "BLOOMERY_MEMORY_ACCESS_MODE")]
    #[case("--namespaces=acme,", "BLOOMERY_NAMESPACES")]
    #[case("--namespaces=acme,../beta", "BLOOMERY_NAMESPACES")]
    #[case("--run-as-user=0", "BLOOMERY_RUN_AS_USER")]
    #[case("--focus-cache-size=1Gb", "BLOOMERY_FOCUS_CACHE_SIZE")]
    #[case("--log-max-size=-1", "BLOOMERY_LOG_MAX_SIZE")]
    #[case("--log-max-age=old", "BLOOMERY_LOG_MAX_AGE")]
    #[case("--log-max-count=many", "BLOOMERY_LOG_MAX_COUNT")]
    #[case("--worker-endpoint-ranges=10.0.0.0/8,10.0.0.1", "BLOOMERY_WORKER_ENDPOINT_RANGES")]
    #[case(r#"--worker-pod={"nodeselector": {}}"#, "BLOOMERY_WORKER_POD")]
    #[case(r#"--mcp-pod={"tolerations": {}}"#, "BLOOMERY_MCP_POD")]
    #[case(r#"--mcp-max-resources={"memory": "2Gb"}"#, "BLOOMERY_MCP_MAX_RESOURCES")]
    #[case("--worker-log-format=xml", "BLOOMERY_WORKER_LOG_FORMAT")]
    #[case("--pod-retention=soon", "BLOOMERY_POD_RETENTION")]
    #[case("--pod-retention=-5m", "BLOOMERY_POD_RETENTION")]
    #[case("--pod-retention=18446744073709551615h", "BLOOMERY_POD_RETENTION")]
    #[case("--approval-expiry=1000001h", "BLOOMERY_APPROVAL_EXPIRY")]
    #[case("--child-wait=1h-5s", "BLOOMERY_CHILD_WAIT")]
    #[case(r#"--tenants={"maxLimits": {"duration": "18446744073709551615h"}}"#, "BLOOMERY_TENANTS")]
    #[case("--log=a=b=c", "BLOOMERY_LOG")]
    #[case("--approval-expiry=later", "BLOOMERY_APPROVAL_EXPIRY")]
    #[case("--approvals={}", "BLOOMERY_APPROVALS")]
    #[case("--reply-expiry=-1h", "BLOOMERY_REPLY_EXPIRY")]
    #[case(r#"--network={"deny": ["10.0.0.1"]}"#, "BLOOMERY_NETWORK")]
    #[case(r#"--network={"dns": {"peers": [], "ports": []}}"#, "BLOOMERY_NETWORK")]
    #[case(r#"--tenants={"allowedTool": []}"#, "BLOOMERY_TENANTS")]
    #[case(r#"--tenants={"blockedTools": ["*_money"]}"#, "BLOOMERY_TENANTS")]
    #[case("--max-running-jobs=0", "BLOOMERY_MAX_RUNNING_JOBS")]
    #[case("--max-running-jobs-per-namespace=all", "BLOOMERY_MAX_RUNNING_JOBS_PER_NAMESPACE")]
    #[case("--child-wait=long", "BLOOMERY_CHILD_WAIT")]
    fn an_invalid_setting_is_refused_with_the_name_of_its_variable(#[case] flag: &str, #[case] variable: &str) {
        let message = Settings::describe_error(&parse(&[flag]).unwrap_err());
        assert!(message.contains(variable), "{message}");
    }
}
