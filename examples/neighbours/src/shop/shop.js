// Keeps the figures of a page that somebody looks at true. The page works without it.

const { item } = document.documentElement.dataset;
const [left, crowd] = ["left", "crowd"].map((id) => document.getElementById(id));

async function look() {
  const [stock, line] = await Promise.all(
    ["/shop/stock", `/api/v1/item/${item}/waiting-queue`].map(async (address) => (await fetch(address)).json()),
  );
  if (stock.left !== null) left.textContent = stock.left;
  if (!crowd) return;
  const people = line.waitingCount === 1 ? "1 person waits" : `${line.waitingCount} people wait`;
  crowd.textContent = line.lineState === "SOLD_OUT" ? `Sold out for now, and ${people} for more.` : `${people} right now.`;
}

for (;;) {
  if (!document.hidden) await look().catch(() => {});
  await new Promise((again) => setTimeout(again, 1000));
}
