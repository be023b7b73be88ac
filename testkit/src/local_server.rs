//! Serves a router until the test ends.

use axum::Router;
use axum::serve::ListenerExt;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::TcpListener;

/// Serves `router` on a free port of 127.0.0.1 until the runtime ends. Returns the base URL, without a slash at its end.
///
/// Use [`crate::serving::Running`] if the test has to stop the server.
pub async fn serve(router: Router) -> String {
    serve_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port"), router)
}

/// Serves `router` on `listener` until the runtime ends. Returns the base URL, without a slash at its end.
pub fn serve_on(listener: TcpListener, router: Router) -> String {
    let address = listener.local_addr().expect("the address of a listener");
    // Without `TCP_NODELAY`, an answer that is written in two parts waits 40 ms for the acknowledgement of the first part.
    let listener = listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

/// Returns an address of 127.0.0.1 on which no server listens.
pub async fn unused_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    listener.local_addr().expect("the address of a listener")
}
