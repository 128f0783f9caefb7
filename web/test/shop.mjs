// A stand-in for the shop behind the line: accepts users with a valid pass.

import { createPublicKey, verify } from "node:crypto";
import { createServer } from "node:http";

export class Shop {
  static async open() {
    const shop = new Shop();
    shop.passes = [];
    shop.server = createServer((request, response) => {
      const address = new URL(request.url, "http://shop");
      if (address.pathname === "/enter") shop.passes.push(address.searchParams.get("pass"));
      response.writeHead(200, { "content-type": "text/html" });
      response.end("<!doctype html><title>The shop</title><link rel=icon href=data:,><h1>Welcome to the shop</h1>");
    });
    await new Promise((listening) => shop.server.listen(0, "127.0.0.1", listening));
    shop.origin = `http://127.0.0.1:${shop.server.address().port}`;
    shop.entryUrl = `${shop.origin}/enter?pass={pass}`;
    return shop;
  }

  /** The claims of a pass, if its signature is that of a published key. */
  async claims(pass, roomOrigin) {
    const { keys } = await (await fetch(`${roomOrigin}/.well-known/jwks.json`)).json();
    const [head, body, signature] = pass.split(".");
    const { kid } = JSON.parse(Buffer.from(head, "base64url"));
    const key = createPublicKey({ key: keys.find((key) => key.kid === kid), format: "jwk" });
    const good = verify(null, Buffer.from(`${head}.${body}`), key, Buffer.from(signature, "base64url"));
    return good ? JSON.parse(Buffer.from(body, "base64url")) : null;
  }

  end() {
    this.server.closeAllConnections();
    this.server.close();
  }
}
