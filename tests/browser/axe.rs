//! axe-core: what a machine can check of WCAG 2.2 AA.

use std::{io::Read as _, sync::LazyLock};

use serde_json::Value;

use crate::support::Browser;

static SOURCE: LazyLock<String> = LazyLock::new(|| {
    let mut source = String::new();
    flate2::read::GzDecoder::new(&include_bytes!("axe/axe.min.js.gz")[..]).read_to_string(&mut source).unwrap();
    source
});

const RUN: &str = "const done = arguments[0]; \
    axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }) \
    .then((found) => done({ passes: found.passes.length, violations: found.violations.map((rule) => \
        rule.id + ': ' + rule.help + ' at ' + rule.nodes.slice(0, 3).map((node) => node.html).join(' , ')) }), \
        (error) => done(String(error)));";

/// What axe-core finds wrong with the page as it is shown now.
pub async fn violations(browser: &Browser) -> Vec<String> {
    browser.client.execute(&SOURCE, vec![]).await.unwrap();
    let found = browser.client.execute_async(RUN, vec![]).await.unwrap();
    // It must have looked at something.
    assert!(found["passes"].as_u64().is_some_and(|passes| passes > 5), "axe-core did not run: {found}");
    let Value::Array(violations) = &found["violations"] else { panic!("axe-core answered {found}") };
    violations.iter().map(|violation| violation.as_str().unwrap().to_owned()).collect()
}
