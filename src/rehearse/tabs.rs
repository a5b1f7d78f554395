//! Somebody with five tabs: four more that wait beside the first, on the same cookies.

use std::sync::Arc;

use rand::{Rng as _, SeedableRng as _};
use tokio::task::JoinSet;

use super::{
    line::InLine,
    personality::Dice,
    visitor::{Page, Visitor},
};

/// Opens four more tabs on `page` for somebody who does that. They end when any tab got in, and at the latest when
/// the returned set is dropped.
pub(super) fn open_more(visitor: &mut Visitor, page: &str) -> JoinSet<()> {
    let mut tabs = JoinSet::new();
    for _ in 1..visitor.personality.tabs() {
        let tab = Visitor {
            world: Arc::clone(&visitor.world),
            tab: visitor.tab.beside(),
            dice: Dice::seed_from_u64(visitor.dice.next_u64()),
            personality: visitor.personality,
            served: visitor.served.clone(),
        };
        tabs.spawn(wait_beside(tab, page.to_owned()));
    }
    tabs
}

async fn wait_beside(mut tab: Visitor, page: String) {
    if matches!(tab.open(&page).await, Ok(Page::Queued))
        && let InLine::Admitted(location) = tab.wait(&page).await
    {
        // The page that was waited for opens in every tab; the first one buys.
        let _ = tab.open(&location).await;
    } else if tab.tab.person().is_inside() {
        tab.served.cancel();
    }
}
