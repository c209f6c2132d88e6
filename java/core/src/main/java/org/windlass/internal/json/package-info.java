// SPDX-License-Identifier: Apache-2.0
/** Reading and writing JSON. */
package org.windlass.internal.json;
