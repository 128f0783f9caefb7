//! Texts of the shop in both languages.

use daegi_domain::Language;

/// The texts of one language.
pub(super) struct Messages {
    pub(super) shop: &'static str,
    pub(super) left: &'static str,
    pub(super) footer: &'static str,
    pub(super) back: &'static str,
    /// Headline, text and action of each page.
    pub(super) window: [&'static str; 3],
    pub(super) checkout: [&'static str; 3],
    pub(super) thanks: [&'static str; 2],
    pub(super) late: [&'static str; 2],
    pub(super) no_pass: [&'static str; 3],
    pub(super) trouble: [&'static str; 2],
    /// Texts for the script: several users waiting, one user waiting, and the same when sold out.
    pub(super) crowd: [&'static str; 4],
}

pub(super) fn for_language(language: Language) -> &'static Messages {
    if language == Language::Korean { &KOREAN } else { &ENGLISH }
}

static ENGLISH: Messages = Messages {
    shop: "The Little Box Office",
    left: "tickets left",
    footer: "A demo of <b>daegi</b>: the shop is not real, the line is.",
    back: "Back to the shop",
    window: [
        "One night only",
        "Many want to come, and the till takes twenty people at a time.",
        "Buy a ticket",
    ],
    checkout: ["Your turn", "Welcome, {who}. Your pass is good.", "Pay and get the ticket"],
    thanks: ["Thank you", "The ticket is yours. Order {order}"],
    late: ["Too late", "The last ticket went to somebody else a moment ago."],
    no_pass: ["One after the other", "You cannot buy with this: {why}.", "Join the line"],
    trouble: [
        "One moment",
        "The till does not work right now. Your place is kept; reload to try again.",
    ],
    crowd: [
        "{n} people wait right now.",
        "1 person waits right now.",
        "Sold out for now, and {n} people wait for more.",
        "Sold out for now, and 1 person waits for more.",
    ],
};

static KOREAN: Messages = Messages {
    shop: "작은 매표소",
    left: "장 남음",
    footer: "<b>daegi</b> 데모입니다. 가게는 가짜지만 줄은 진짜입니다.",
    back: "가게로 돌아가기",
    window: ["단 하룻밤", "오고 싶은 사람이 많아 한 번에 스무 명씩 들어갑니다.", "표 사기"],
    checkout: [
        "차례가 되었습니다",
        "{who} 님, 환영합니다. 입장권이 확인되었습니다.",
        "결제하고 표 받기",
    ],
    thanks: ["감사합니다", "표를 구매했습니다. 주문 {order}"],
    late: ["늦었습니다", "방금 마지막 표가 팔렸습니다."],
    no_pass: ["차례대로 들어갑니다", "이것으로는 살 수 없습니다: {why}.", "줄 서기"],
    trouble: [
        "잠시만요",
        "지금은 결제할 수 없습니다. 순서는 그대로이니 새로 고쳐 다시 시도해 주세요.",
    ],
    crowd: [
        "지금 {n}명이 기다립니다.",
        "지금 1명이 기다립니다.",
        "지금은 매진이며 {n}명이 다음 표를 기다립니다.",
        "지금은 매진이며 1명이 다음 표를 기다립니다.",
    ],
};
