// Refreshes the figures of a visible page. The page works without it.

const { item, crowd: words } = document.documentElement.dataset;
const [many, one, manyForMore, oneForMore] = words.split("|");
const [left, crowd] = ["left", "crowd"].map((id) => document.getElementById(id));

async function look() {
  const [stock, line] = await Promise.all(
    ["/shop/stock", `/api/v1/item/${item}/waiting-queue`].map(async (address) => (await fetch(address)).json()),
  );
  if (stock.left !== null) left.textContent = stock.left;
  if (!crowd) return;
  const soldOut = line.lineState === "SOLD_OUT";
  const said = line.waitingCount === 1 ? (soldOut ? oneForMore : one) : soldOut ? manyForMore : many;
  crowd.textContent = said.replace("{n}", line.waitingCount);
}

for (;;) {
  if (!document.hidden) await look().catch(() => {});
  await new Promise((again) => setTimeout(again, 1000));
}
