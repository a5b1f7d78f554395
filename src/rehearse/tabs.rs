//! Somebody with five tabs: four more that wait beside the first, on the same cookies.

use std::{sync::Arc, time::Duration};

use rand::{Rng as _, SeedableRng as _};
use tokio::{task::JoinSet, time::timeout};

use super::{
    line::InLine,
    personality::Dice,
    visitor::{Page, Visitor},
};

const MOMENT: Duration = Duration::from_secs(1);

/// Opens four more tabs on `page` for somebody who does that and has a place: without one, each tab would rightly get
/// its own. They end when any tab got in, and at the latest when the returned set is dropped.
pub(super) fn open_more(visitor: &mut Visitor, page: &str) -> JoinSet<()> {
    let mut tabs = JoinSet::new();
    if !visitor.tab.person().is_queued() {
        return tabs;
    }
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

/// Somebody got in: the other tabs have a moment to open the page too. Whoever leaves has closed them all, as a tab that
/// is still loading then would come back as somebody new.
pub(super) async fn close(mut tabs: JoinSet<()>) {
    let all_open = async { while tabs.join_next().await.is_some() {} };
    let _ = timeout(MOMENT, all_open).await;
    tabs.shutdown().await;
}
