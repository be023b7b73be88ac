//! Faults, served.

use std::time::Duration;

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Model;
use crate::model_server::answer::Answer;
use crate::model_server::cache::Cached;
use crate::model_server::delivery::{Delivery, Ending};
use crate::model_server::desk::{FaultPlace, Place};
use crate::model_server::error::ApiError;
use crate::model_server::request::Request;
use crate::model_server::script::{Cut, Fault, FaultKind, Turn};

impl Model {
    /// Serves a fault, if it is its turn; none: on to what comes after it.
    pub(super) async fn fault(
        &self,
        fault: &Fault,
        at: FaultPlace,
        request: &Request,
        turn: &Turn,
    ) -> Result<Option<Response>, ApiError> {
        let place = Place { stage: at.stage, turn: at.turn };
        if let FaultKind::Hold(name) = &fault.kind {
            let released = self.desk.hold(name, request, place).await;
            return if released { Ok(None) } else { Err(stopping()) };
        }
        tracing::info!(user = at.user, conversation = at.conversation, kind = ?fault.kind, "fault");
        if !self.desk.take(at, fault.times) {
            return Ok(None);
        }
        self.serve(&fault.kind, request, place, turn).await.map(Some)
    }

    async fn serve(
        &self,
        kind: &FaultKind,
        request: &Request,
        place: Place,
        turn: &Turn,
    ) -> Result<Response, ApiError> {
        // What is no answer of the script is not noted as one.
        let of = |turn: &Turn| Delivery::of(request, &Answer::of(request, place, turn, Cached::default()));
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
                    return Ok(Json(request.wire.error(&error)).into_response());
                }
                of(turn).ending(Ending::Error(request.wire.error_event(&error)))
            }
            FaultKind::Say(text) => of(&Turn { say: Some(text.clone()), ..Turn::default() }),
            FaultKind::Huge(bytes) => Delivery::of(request, &Answer::huge(request, place, *bytes)),
            FaultKind::Empty => of(&Turn::default()),
            FaultKind::Slow(pause) => self.answer(request, place, turn).slowly(Duration::from_millis(*pause)),
            FaultKind::Cut(Cut::Reset) => of(turn).ending(Ending::Reset),
            FaultKind::Cut(Cut::Short) => of(turn).ending(Ending::Short),
            FaultKind::Cut(Cut::Unmarked) => of(turn).ending(Ending::Unmarked),
            FaultKind::Stall => of(turn).ending(Ending::Stalled),
            // A client that goes away ends this, and so does the end of the server.
            FaultKind::Hang | FaultKind::Hold(_) => {
                self.desk.stop.cancelled().await;
                return Err(stopping());
            }
        };
        Ok(served.into_response(self.desk.stop.clone()))
    }
}

fn stopping() -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "The server is stopping.")
}
