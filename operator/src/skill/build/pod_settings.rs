//! The settings of pods that a Skill makes, within what the installation allows.

use super::super::validate::InvalidSkill;
use crate::settings::{PodDefaults, Settings};
use bloomery_crds::v1alpha1::{PodSettings, Pods};

/// Checks that a Skill sets only what it may set.
pub(super) fn check(pods: Option<&Pods>, settings: &Settings) -> Result<(), InvalidSkill> {
    let Some(Pods { worker, mcp }) = pods else { return Ok(()) };
    let mut faults = faults("worker", worker.as_ref(), &settings.worker.pod);
    faults.extend(self::faults("mcp", mcp.as_ref(), &settings.mcp.pod));
    if faults.is_empty() { Ok(()) } else { Err(InvalidSkill::new(faults)) }
}

fn faults(kind: &str, own: Option<&PodSettings>, defaults: &PodDefaults) -> Vec<String> {
    let refused = own.map(|own| defaults.refused(own)).unwrap_or_default();
    let refused = refused.iter().map(|field| {
        format!("spec.pods.{kind}.{field}: is not allowed; an administrator can allow it with {kind}.skillMaySet of the chart.")
    });
    refused.collect()
}
