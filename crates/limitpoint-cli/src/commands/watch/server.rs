//! The server: a page, its news, and the files of the folder; nothing can be written.
//!
//! ```text
//! GET /            the page
//! GET /parts       what a page that is there needs to become the newest
//! GET /events      the number of the newest version, whenever there is one (server-sent events)
//! GET /files/PATH  a file of the folder
//! ```

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_TYPE, COOKIE, HOST, REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream::{Stream, unfold};
use tokio::sync::watch::Receiver;

use super::follow::Snapshot;
use super::guard::{self, Found, Guard};

/// What every answer is made from.
#[derive(Clone)]
pub struct Shared {
    /// The folder, a path without links.
    pub folder: PathBuf,
    /// The newest page.
    pub snapshots: Receiver<Arc<Snapshot>>,
    /// Who may ask.
    pub guard: Guard,
}

/// Distance between signs of life on a connection without news.
const ALIVE: Duration = Duration::from_secs(15);

/// Answers until it is ended.
pub async fn serve(listener: tokio::net::TcpListener, shared: Shared) -> anyhow::Result<()> {
    let routes = Router::new()
        .route("/", get(page))
        .route("/parts", get(parts))
        .route("/events", get(events))
        .route("/files/{*path}", get(file))
        .layer(from_fn_with_state(shared.clone(), admit))
        .with_state(shared);
    axum::serve(listener, routes).await.context("the server ended")
}

/// Refuses who may not ask; the token of an address is kept as a cookie, so that the page can ask for its news.
async fn admit(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let query = request.uri().query().map(str::to_owned);
    if !shared.guard.admits(query.as_deref(), header(COOKIE), header(HOST)) {
        return (StatusCode::FORBIDDEN, "the token is missing or wrong, or this server goes by another name\n")
            .into_response();
    }
    let fresh = query.as_deref().is_some_and(|query| query.contains("token="));
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if let Some(token) = shared.guard.token.filter(|_| fresh) {
        let cookie = format!("{}={token}; HttpOnly; SameSite=Strict; Path=/", guard::COOKIE);
        if let Ok(value) = HeaderValue::from_str(&cookie) {
            headers.insert(SET_COOKIE, value);
        }
    }
    response
}

async fn page(State(shared): State<Shared>) -> Response {
    let snapshot = Arc::clone(&shared.snapshots.borrow());
    ([(CONTENT_TYPE, "text/html; charset=utf-8")], snapshot.page.clone()).into_response()
}

async fn parts(State(shared): State<Shared>) -> Response {
    let snapshot = Arc::clone(&shared.snapshots.borrow());
    ([(CONTENT_TYPE, "application/json")], snapshot.parts.clone()).into_response()
}

async fn events(State(shared): State<Shared>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let stream = unfold((shared.snapshots, true), |(mut snapshots, first)| async move {
        if !first && snapshots.changed().await.is_err() {
            return None;
        }
        let version = snapshots.borrow_and_update().version;
        Some((Ok(Event::default().data(version.to_string())), (snapshots, false)))
    });
    Sse::new(stream).keep_alive(KeepAlive::new().interval(ALIVE))
}

async fn file(State(shared): State<Shared>, Path(path): Path<String>) -> Response {
    let read = tokio::task::spawn_blocking(move || match guard::find(&shared.folder, &path) {
        Found::File(path) => std::fs::read(path).map_err(|_| StatusCode::NOT_FOUND),
        Found::Missing => Err(StatusCode::NOT_FOUND),
        Found::Outside => Err(StatusCode::FORBIDDEN),
    });
    match read.await {
        // never as something a browser would run
        Ok(Ok(bytes)) => ([(CONTENT_TYPE, "application/octet-stream")], bytes).into_response(),
        Ok(Err(status)) => status.into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
