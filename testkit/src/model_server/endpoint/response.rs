//! The response to a request that has an answer in the script: this answer or a fault.

use std::time::Duration;

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::model_server::answer::Answer;
use crate::model_server::cache::Cached;
use crate::model_server::delivery::{Delivery, Ending};
use crate::model_server::error::ApiError;
use crate::model_server::place::Place;
use crate::model_server::request::Request;
use crate::model_server::script::{Cut, Fault, FaultKind, Turn};
use crate::model_server::state::{FaultPlace, ServerState};
use crate::model_server::wire;

/// A request that has an answer in the script.
pub(super) struct ScriptedRequest<'a> {
    pub(super) state: &'a ServerState,
    pub(super) request: &'a Request,
    pub(super) place: Place,
    /// The name of the conversation. It is empty for a default answer.
    pub(super) conversation: &'a str,
    /// The answer, with its faults.
    pub(super) turn: &'a Turn,
}

impl ScriptedRequest<'_> {
    /// Serves the next fault of the turn, or the answer once each fault was served as often as the script says.
    pub(super) async fn respond(&self) -> Result<Response, ApiError> {
        for (index, fault) in self.turn.faults.iter().enumerate() {
            if let Some(served) = self.serve_next(index, fault).await? {
                return Ok(served);
            }
        }
        Ok(self.answer().into_response(self.state.stop.clone()))
    }

    /// Serves a fault. Returns `None` if it was already served as often as the script says, or if it is a hold, which
    /// is released now.
    async fn serve_next(&self, index: usize, fault: &Fault) -> Result<Option<Response>, ApiError> {
        if let FaultKind::Hold(name) = &fault.kind {
            let released = self.state.wait_for_release(name, self.request, self.place).await;
            return if released { Ok(None) } else { Err(stopping_error()) };
        }
        let (user, conversation) = (self.request.user_name().to_owned(), self.conversation.to_owned());
        tracing::info!(user, conversation, kind = ?fault.kind, "fault");
        if !self.state.take_serving(FaultPlace { user, conversation, place: self.place, index }, fault.times) {
            return Ok(None);
        }
        self.serve_kind(&fault.kind).await.map(Some)
    }

    async fn serve_kind(&self, kind: &FaultKind) -> Result<Response, ApiError> {
        let Self { state, request, place, turn, .. } = *self;
        // These answers are not the scripted answer, so they are not recorded.
        let deliver = |turn: &Turn| Delivery::new(request, &Answer::new(request, place, turn, Cached::default()));
        let served = match kind {
            FaultKind::Status { status, retry_after } => return Err(ApiError::scripted(*status, *retry_after)),
            FaultKind::TooLong => return Err(ApiError::too_long()),
            FaultKind::Garbage => {
                let json = [(header::CONTENT_TYPE, "application/json")];
                return Ok((json, "<html>upstream says hello</html>").into_response());
            }
            FaultKind::ErrorInside(status) => {
                let error = ApiError::scripted(*status, None);
                if !request.stream {
                    return Ok(Json(wire::error(request.protocol, &error)).into_response());
                }
                deliver(turn).ending(Ending::Error(wire::error_event(request.protocol, &error)))
            }
            FaultKind::Say(text) => deliver(&Turn { say: Some(text.clone()), ..Turn::default() }),
            FaultKind::Huge(bytes) => Delivery::new(request, &Answer::huge(request, place, *bytes)),
            FaultKind::Empty => deliver(&Turn::default()),
            FaultKind::Slow(pause) => self.answer().slowly(Duration::from_millis(*pause)),
            FaultKind::Cut(Cut::Reset) => deliver(turn).ending(Ending::Reset),
            FaultKind::Cut(Cut::Short) => deliver(turn).ending(Ending::Short),
            FaultKind::Cut(Cut::Unmarked) => deliver(turn).ending(Ending::Unmarked),
            FaultKind::Stall => deliver(turn).ending(Ending::Stalled),
            // Ends when the client disconnects or the server stops.
            FaultKind::Hang | FaultKind::Hold(_) => {
                state.stop.cancelled().await;
                return Err(stopping_error());
            }
        };
        Ok(served.into_response(state.stop.clone()))
    }

    /// Prepares the answer of the script, and records it.
    fn answer(&self) -> Delivery {
        let Self { state, request, place, turn, .. } = *self;
        let answer = Answer::new(request, place, turn, state.count_cached(request));
        state.record_answer(request, place, &answer);
        Delivery::new(request, &answer)
    }
}

fn stopping_error() -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "The server is stopping.")
}
