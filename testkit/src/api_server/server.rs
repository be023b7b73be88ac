//! The interface of the server for tests.

use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::admission::Write;
use super::store::State;

/// The API server. Clones share one state.
#[derive(Clone, Default)]
pub struct ApiServer(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    /// Notified of every request and every change.
    changed: Notify,
}

impl ApiServer {
    /// Stores an object under its path with a new version.
    pub fn put(&self, path: &str, object: Value) {
        self.state().put(path, object);
        self.0.changed.notify_waiters();
    }

    /// Changes a stored object.
    ///
    /// # Panics
    /// There is no such object.
    pub fn change(&self, path: &str, change: impl FnOnce(&mut Value)) {
        let mut object = self.get(path);
        change(&mut object);
        self.put(path, object);
    }

    /// Deletes an object if it exists.
    pub fn remove(&self, path: &str) {
        self.state().remove(path);
        self.0.changed.notify_waiters();
    }

    /// Returns a stored object.
    ///
    /// # Panics
    /// There is no such object.
    pub fn get(&self, path: &str) -> Value {
        self.find(path).unwrap_or_else(|| panic!("{path} does not exist"))
    }

    /// Returns a stored object if it exists.
    pub fn find(&self, path: &str) -> Option<Value> {
        self.state().find(path)
    }

    /// Sets the log of all pods whose names begin with `pod`. If a client reads the log of a running pod, the pod succeeds.
    pub fn logs(&self, pod: &str, text: &str) {
        self.state().logs.insert(pod.to_owned(), text.to_owned());
    }

    /// Stores an object just before the next write to its path, to simulate another client. Each call of this function
    /// applies to one write.
    pub fn meanwhile(&self, path: &str, object: Value) {
        self.state().meanwhile.push((path.to_owned(), object));
    }

    /// Performs the next merge patch and answers it with an error.
    pub fn lose_next_response(&self) {
        self.state().loses_response = true;
    }

    /// Denies rights to all users except the administrator: `list pods`, or `list pods everywhere` to deny only the list
    /// across all namespaces.
    pub fn deny(&self, rights: &[&str]) {
        self.state().access.denied.extend(rights.iter().map(|right| (*right).to_owned()));
    }

    /// Denies all rights that are not granted.
    pub fn require_grants(&self) {
        self.state().access.needs_grants = true;
    }

    /// Grants rights to a user: `get pods`, or `approve approvers/supervisor` for one name.
    pub fn grant(&self, user: &str, rights: &[&str]) {
        self.state().access.granted.extend(rights.iter().map(|right| (user.to_owned(), (*right).to_owned())));
    }

    /// Refuses all requests that impersonate this user.
    pub fn deny_impersonation(&self, user: &str) {
        self.state().access.not_impersonated.insert(user.to_owned());
    }

    /// Calls `admission` before every later write. If it returns an error, the write is refused with this error.
    pub fn admit(&self, admission: impl Fn(&Write<'_>) -> Result<(), Value> + Send + Sync + 'static) {
        self.state().admission = Some(Box::new(admission));
    }

    /// Changes every object that a POST creates from now on.
    pub fn on_create(&self, defaults: impl Fn(&mut Value) + Send + Sync + 'static) {
        self.state().defaults = Some(Box::new(defaults));
    }

    /// Answers later requests for an API group as if it were not installed.
    pub fn uninstall_group(&self, group: &str) {
        self.state().uninstalled_group = Some(group.to_owned());
    }

    /// Refuses later requests of a user with a 401, as if the user's token had expired. Watches go on.
    pub fn expire(&self, user: &str) {
        self.state().expired_users.insert(user.to_owned());
    }

    /// Sends no event to watches from now on.
    pub fn silence_watches(&self) {
        self.state().are_watches_silent = true;
    }

    /// Sets the status of every `TokenReview` from now on, except those of [`ApiServer::review_token`].
    pub fn review_tokens(&self, status: Value) {
        self.state().token_review = status;
    }

    /// Sets the status of the reviews of one token.
    pub fn review_token(&self, token: &str, status: Value) {
        self.state().token_reviews_by_token.insert(token.to_owned(), status);
    }

    /// Returns the number of reviewed tokens.
    pub fn reviews(&self) -> u32 {
        self.state().token_reviews
    }

    /// Returns all requests: `<user> <method> <path>`, where the method of a watch is `WATCH`.
    pub fn requests(&self) -> Vec<String> {
        self.state().requests.clone()
    }

    /// Returns all merge patches.
    pub fn patches(&self) -> Vec<Value> {
        self.state().patches.clone()
    }

    /// Returns the writes since the last call of this function: the kind, as in [`Write::kind`], and the path.
    pub fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.state().writes)
    }

    /// Returns the paths of the namespaced objects that were read by name since the last call of this function.
    pub fn reads(&self) -> Vec<String> {
        std::mem::take(&mut self.state().reads)
    }

    /// Wakes watches, and tests that wait for a request.
    pub(super) fn notify(&self) {
        self.0.changed.notify_waiters();
    }

    /// Returns a future that waits for the next request or change after this call, even if it is polled later.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.0.changed.notified()
    }

    /// Waits for a request whose line in [`ApiServer::requests`] contains `text`.
    pub async fn until_requested(&self, text: &str) {
        loop {
            let changed = self.changed();
            if self.state().requests.iter().any(|request| request.contains(text)) {
                return;
            }
            changed.await;
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("no panic happened while the state was locked")
    }
}
