//! People who have decided before the worker began: a Job that waits has no pod, and its next one is told what was decided.

use super::People;
use bloomery_crds::run::GivenDecision;
use bloomery_crds::v1alpha1::ApprovalVerdict;
use bloomery_engine::event::{CallId, Decision};
use bloomery_engine::people::{Ask, Said};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use std::sync::{Mutex, PoisonError};

/// What was decided before: heard once, at the beginning. Nobody is asked here.
#[derive(Debug, Default)]
pub struct Decided(Mutex<Vec<Said>>);

impl Decided {
    /// What the Job's part says of it.
    pub fn new(given: &[GivenDecision]) -> Self {
        Self(Mutex::new(given.iter().map(said).collect()))
    }
}

impl People for Decided {
    fn are_here(&self) -> bool {
        false
    }

    fn heard(&self) -> Vec<Said> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn ask<'a>(&'a self, _: &'a [Ask<'a>]) -> LocalBoxFuture<'a, Option<Said>> {
        futures::future::ready(None).boxed_local()
    }
}

fn said(given: &GivenDecision) -> Said {
    let GivenDecision { call, digest, approver, verdict, by, reason } = given;
    let call = CallId(call.clone());
    let decision = |by: &str| Decision { approver: approver.clone(), by: by.to_owned(), reason: reason.clone() };
    match verdict {
        ApprovalVerdict::Approve => Said::Approves { call, digest: digest.clone(), decision: decision(by) },
        ApprovalVerdict::Deny => Said::Denies { call, decision: decision(by) },
        ApprovalVerdict::Expired => Said::Denies { call, decision: decision(Decision::NOBODY) },
    }
}
