//! The events of a response, within the size limit.

use super::{Events, HttpTransport};
use crate::delivery::{Delivery, DeliveryLog};
use crate::transport_error::Error;
use crate::{notification, oversized, repair};
use bloomery_http::root_cause;
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt};
use reqwest::Response;
use rmcp::model::RequestId;
use sse_stream::{Sse, SseStream};
use std::sync::PoisonError;

impl HttpTransport {
    /// Returns the events of a response, up to the size limit. `id` is the request that the events answer. An error is recorded as the
    /// delivery of this request. If the event at the limit is the answer, a small message stands for the answer.
    pub(super) fn events(&self, response: Response, id: Option<RequestId>) -> Events {
        let (transport, bytes) = (self.clone(), self.bounded(response, id.clone()));
        let events = SseStream::from_bytes_stream(bytes).map_ok(move |event| {
            let data = event.data.map(|data| match &id {
                // The event at the limit is cut, so it is not valid JSON.
                Some(id) if transport.has_overflowed(id) && !oversized::is_json(&data) => {
                    oversized::answer_to(id, data.as_bytes(), transport.max_answer).unwrap_or_default()
                }
                _ => repair::read(&data, &transport.redactor).into_owned(),
            });
            let event = Sse { data, ..event };
            record_event(&transport.deliveries, id.as_ref(), &event);
            event
        });
        events.boxed()
    }

    /// Returns whether the stream of a request exceeded the size limit.
    pub(super) fn has_overflowed(&self, id: &RequestId) -> bool {
        self.overflowed.lock().unwrap_or_else(PoisonError::into_inner).contains(id)
    }

    /// Returns the chunks of a response, up to the size limit. The chunk at the limit ends with the end of an event.
    fn bounded(
        &self,
        response: Response,
        id: Option<RequestId>,
    ) -> impl Stream<Item = Result<Bytes, Error>> + Send + 'static {
        let transport = self.clone();
        response.bytes_stream().scan(Some(self.max_answer), move |left, chunk| {
            let Some(room) = *left else { return std::future::ready(None) };
            let chunk = match chunk {
                Ok(chunk) if chunk.len() <= room => {
                    *left = Some(room - chunk.len());
                    Ok(chunk)
                }
                Ok(chunk) => {
                    *left = None;
                    transport.record_overflow(id.as_ref());
                    Ok(oversized::cut_event(&chunk, room).into())
                }
                Err(error) => {
                    let reason = format!("its answer was cut off: {}", root_cause(&error));
                    transport.record_broken(id.as_ref(), &reason);
                    Err(Error::Broken(reason))
                }
            };
            std::future::ready(Some(chunk))
        })
    }

    /// Records that the stream of a request exceeded the size limit. The answer is lost unless the event at the limit is the answer.
    fn record_overflow(&self, id: Option<&RequestId>) {
        self.record_broken(id, &format!("its answer is larger than {} bytes", self.max_answer));
        self.overflowed.lock().unwrap_or_else(PoisonError::into_inner).extend(id.cloned());
    }

    fn record_broken(&self, id: Option<&RequestId>, reason: &str) {
        if let Some(id) = id {
            self.deliveries.record(Some(id), Delivery::Broken(reason.to_owned()));
        }
    }
}

/// Records an event on the stream of a request, and the message in it.
fn record_event(deliveries: &DeliveryLog, request: Option<&RequestId>, event: &Sse) {
    if let (Some(request), Some(id)) = (request, &event.id) {
        deliveries.record_event(request, id);
    }
    if let Some(message) = event.data.as_deref().and_then(notification::read) {
        deliveries.receive(request, message);
    }
}
