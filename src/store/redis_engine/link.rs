//! A connection to the servers that hold the data, and how it is made.

use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionInfo, ErrorKind, FromRedisValue as _, RedisError, ServerErrorKind,
    aio::{ConnectionLike as _, MultiplexedConnection},
    cluster::ClusterClient,
    cluster_async::ClusterConnection,
    cluster_routing::{MultipleNodeRoutingInfo, ResponsePolicy, RoutingInfo},
    io::tcp::TcpSettings,
};

use super::{
    super::{
        StoreError,
        redis_address::RedisAddress,
        redis_rules::{CONCURRENT_CALLS, DEADLINE, check_info, warn_unchecked},
    },
    explain, sentinel,
};

/// How long the peer may leave what we sent unacknowledged before the connection counts as dead.
#[cfg(target_os = "linux")]
const PEER_DEADLINE: std::time::Duration = std::time::Duration::from_secs(5);
/// How often the cluster client tries another node, or the same again, in one call.
const CLUSTER_RETRIES: u32 = 3;
const CLUSTER_RETRY_MILLIS: (u64, u64) = (20, 120);

/// A multiplexed connection. Cheap to clone.
#[derive(Clone)]
pub struct Link {
    /// The server it leads to, or the cluster.
    pub to: String,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Server(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Link {
    /// Sends one command. Its keys decide where a cluster runs it.
    pub async fn ask(&self, command: &Cmd) -> Result<redis::Value, RedisError> {
        match self.kind.clone() {
            Kind::Server(mut connection) => connection.req_packed_command(command).await,
            Kind::Cluster(mut connection) => connection.req_packed_command(command).await,
        }
        .and_then(redis::Value::extract_error)
    }

    /// Whether one part may be in trouble while others still serve.
    pub fn is_cluster(&self) -> bool {
        matches!(self.kind, Kind::Cluster(_))
    }

    /// Refuses servers that will not do, each master of a cluster included.
    pub async fn check(&self) -> Result<(), StoreError> {
        // Without naming sections: servers before 7 take only one.
        let info = redis::cmd("INFO");
        let replies = match self.kind.clone() {
            Kind::Server(_) => self.ask(&info).await.map(|text| vec![(self.to.clone(), text)]),
            Kind::Cluster(mut cluster) => {
                let masters = (MultipleNodeRoutingInfo::AllMasters, Option::<ResponsePolicy>::None);
                cluster.route_command(info, RoutingInfo::MultiNode(masters)).await.map(by_node)
            }
        };
        let replies = match replies {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm) => {
                warn_unchecked(&self.to);
                return Ok(());
            }
            replies => replies.map_err(|error| explain(&self.to, &error))?,
        };
        for (node, reply) in replies {
            let text = String::from_redis_value(reply).map_err(|error| explain(&node, &error.into()))?;
            check_info(node, &text)?;
        }
        Ok(())
    }
}

/// The answers of a command that went to several nodes, with the nodes' addresses.
fn by_node(reply: redis::Value) -> Vec<(String, redis::Value)> {
    let name = |node| String::from_redis_value(node).unwrap_or_default();
    match reply {
        redis::Value::Map(pairs) => pairs.into_iter().map(|(node, reply)| (name(node), reply)).collect(),
        other => vec![("the cluster".to_owned(), other)],
    }
}

/// Connects to whoever is the master now.
pub async fn open(address: &RedisAddress) -> Result<Link, StoreError> {
    match address {
        RedisAddress::Single(server) => open_server(server).await,
        RedisAddress::Sentinel { .. } => sentinel::open_master(address).await,
        RedisAddress::Cluster(nodes) => open_cluster(nodes)
            .await
            .map_err(|error| explain(address, &error))
            .map(|connection| Link { to: address.to_string(), kind: Kind::Cluster(connection) }),
    }
}

/// Connects to one server.
pub async fn open_server(server: &ConnectionInfo) -> Result<Link, StoreError> {
    let to = server.addr().to_string();
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(DEADLINE))
        .set_response_timeout(Some(DEADLINE))
        .set_pipeline_buffer_size(CONCURRENT_CALLS)
        .set_concurrency_limit(CONCURRENT_CALLS);
    let connecting = async {
        let client = Client::open(server.clone().set_tcp_settings(tcp()))?;
        client.get_multiplexed_async_connection_with_config(&config).await
    };
    let connection = connecting.await.map_err(|error: RedisError| explain(&to, &error))?;
    Ok(Link { to, kind: Kind::Server(connection) })
}

async fn open_cluster(nodes: &[ConnectionInfo]) -> Result<ClusterConnection, RedisError> {
    let (least, most) = CLUSTER_RETRY_MILLIS;
    let client = ClusterClient::builder(nodes.iter().cloned())
        .connection_timeout(DEADLINE)
        .response_timeout(DEADLINE)
        .retries(CLUSTER_RETRIES)
        .min_retry_wait(least)
        .max_retry_wait(most)
        .connection_concurrency_limit(CONCURRENT_CALLS)
        .tcp_settings(tcp())
        .build()?;
    client.get_async_connection().await
}

fn tcp() -> TcpSettings {
    let tcp = TcpSettings::default().set_nodelay(true);
    #[cfg(target_os = "linux")]
    let tcp = tcp.set_user_timeout(PEER_DEADLINE);
    tcp
}
