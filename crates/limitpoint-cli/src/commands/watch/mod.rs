//! `limitpoint watch`: a page that follows the files of an experiment, a sweep or a run.

mod follow;
mod guard;
mod server;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

use super::{print, say};
use guard::Guard;

/// Arguments of `watch`.
#[derive(Debug, Args)]
pub struct Watch {
    /// The folder of an experiment, a sweep or a run; another machine may write in it, or copy into it.
    pub folder: PathBuf,
    /// Where to listen; with a port of 0, any that is free. Beyond this machine a token is asked for.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8765")]
    pub address: SocketAddr,
    /// The token that is asked for; a random one where the address is open to others and none is given.
    #[arg(long, value_name = "TEXT", value_parser = guard::token)]
    pub token: Option<String>,
}

/// Runs the verb.
pub fn run(arguments: &Watch) -> anyhow::Result<ExitCode> {
    let folder =
        arguments.folder.canonicalize().with_context(|| format!("cannot find {}", arguments.folder.display()))?;
    let snapshots = follow::follow(&folder)?;
    let open_to_others = !arguments.address.ip().is_loopback();
    let token = match &arguments.token {
        Some(token) => Some(token.clone()),
        None if open_to_others => Some(guard::random_token()?),
        None => None,
    };
    let guard = Guard { token: token.clone(), loopback: !open_to_others };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_io()
        .enable_time()
        .build()
        .context("cannot start the server")?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(arguments.address)
            .await
            .with_context(|| format!("cannot listen at {}; choose another with --address", arguments.address))?;
        let address = listener.local_addr().context("cannot tell the address")?;
        let query = token.map_or_else(String::new, |token| format!("?token={token}"));
        print(&format!("http://{address}/{query}\n"))?;
        say("Ctrl-C ends it; what it shows is only read");
        server::serve(listener, server::Shared { folder, snapshots, guard }).await
    })?;
    Ok(ExitCode::SUCCESS)
}
