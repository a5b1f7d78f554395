//! The line's scripts, each story on both engines: in process, and on a real `redis-server` whose scripts read the
//! test's clock instead of `TIME`, so that windows of minutes pass at once and nothing depends on a machine's load.

mod calling;
mod clocks;
mod differential;
mod draws;
mod ends;
mod epochs;
mod histories;
mod losses;
mod million;
mod modes;
mod pacing;
mod places;
mod positions;
mod real_time;
mod sessions;
mod world;

/// Runs each story over both engines.
macro_rules! on_both_engines {
    ($($story:ident),* $(,)?) => {
        mod in_process {
            $(#[tokio::test]
            async fn $story() {
                super::$story(crate::queue_line::world::World::in_process()).await;
            })*
        }
        mod on_redis {
            $(#[tokio::test]
            async fn $story() {
                super::$story(crate::queue_line::world::World::on_redis().await).await;
            })*
        }
    };
}
use on_both_engines;
